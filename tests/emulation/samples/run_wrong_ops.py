"""Runs each op of wrong_ops.cpp in a model of its own, and prints what PopART and Poplar say."""

import ctypes
import sys

import numpy as np
import popart

OPS = (
    "Right WritesInput ReturnsInput OtherShape OtherType NoPoplarType Unmapped Unwritten NoOutput SelectsConstants NoOpx Unknown"
)

ctypes.cdll.LoadLibrary(sys.argv[1])
for op in OPS.split():
    builder = popart.Builder()
    x = builder.addInputTensor(popart.TensorInfo("FLOAT16", [2, 3]))
    y = builder.customOp(opName=op, opVersion=1, domain="wrong.ops", inputs=[x], attributes={})[0]
    try:
        session = popart.InferenceSession(
            builder.getModelProto(),
            popart.DataFlow(1, {y: popart.AnchorReturnType("FINAL")}),
            popart.DeviceManager().createIpuModelDevice({}),
        )
        session.prepareDevice()
        anchors = session.initAnchorArrays()
        session.run(popart.PyStepIO({x: np.ones((2, 3), np.float16)}, anchors))
        print(f"{op}: {anchors[y].ravel().tolist()}")
    except (popart.popart_exception, popart.poplar_exception, popart.poplibs_exception) as error:
        print(f"{op}: {type(error).__name__}: {str(error).splitlines()[0]}")
