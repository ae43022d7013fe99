"""A session: a program, compiled for a device, that runs on arrays."""

import numpy as np
import popart

from popxl.ir import Ir
from popxl.streams import DeviceToHostStream, HostToDeviceStream
from popxl.tensor import Constant, Variable, to_numpy


class Session:
    """Compiles `ir` for the device `device_desc`, which must be "ipu_model" or "cpu" here; runs inside `with session:`."""

    def __init__(self, ir: Ir, device_desc="cpu", *, weights_to_host_on_exit: bool = True) -> None:
        self.ir_ = ir
        self.weights_to_host_on_exit = weights_to_host_on_exit
        self._device = device_desc if isinstance(device_desc, popart.DeviceInfo) else _device(device_desc)
        anchors = {stream.tensor_id: popart.AnchorReturnType("All") for stream in self._expected_outputs()}
        ir._pb_ir.setDataFlow(popart.DataFlow(ir.num_host_transfers, anchors))
        self._pb_session = popart.InferenceSession.fromIr(ir=ir._pb_ir, deviceInfo=self._device)
        self._pb_session.prepareDevice(loadEngine=False)
        self._entered: list[bool] = []

    @property
    def ir(self) -> Ir:
        """Its program."""
        return self.ir_

    @property
    def is_attached(self) -> bool:
        """Whether it may run: inside of `with session:`."""
        return self._device.isAttached

    def __enter__(self) -> "Session":
        self._entered.append(self.is_attached)
        if not self.is_attached:
            self._device.attach()
            self.weights_from_host()
        return self

    def __exit__(self, kind, error, traceback) -> None:
        if not self._entered.pop():
            if kind is None and self.weights_to_host_on_exit:
                self.weights_to_host()
            self._device.detach()

    def _must_be_attached(self) -> None:
        if not self.is_attached:
            raise ValueError(
                "Must be attached to device before calling a runtime function. Put the call inside a `Session` context, for "
                "example `with session: session.run()`."
            )

    def expected_inputs(self) -> list[HostToDeviceStream]:
        """The streams that a run needs values for."""
        return list(self.ir.get_all_h2d_streams())

    def _expected_outputs(self) -> list[DeviceToHostStream]:
        return list(self.ir.get_all_d2h_streams())

    def _full_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        transfers = self.ir.num_host_transfers
        return (transfers, *shape) if transfers > 1 else shape

    def create_host_outputs(self) -> dict[DeviceToHostStream, np.ndarray]:
        """New arrays for what a run writes."""
        return {stream: np.empty(self._full_shape(stream.shape), stream.dtype.as_numpy()) for stream in self._expected_outputs()}

    def run_with_outputs(self, inputs=None, outputs=None, downcast_inputs: bool = True) -> None:
        """Runs the program on the arrays `inputs`, by their streams, and fills the arrays `outputs`.

        Raises:
            ValueError: outside of `with session:`, a stream without an array, an array without a stream, or the wrong shape.
        """
        self._must_be_attached()
        arrays = {stream: to_numpy(array, downcast=downcast_inputs) for stream, array in (inputs or {}).items()}
        outputs = outputs or {}
        self._check("input", arrays, self.expected_inputs())
        self._check("output", outputs, self._expected_outputs())
        stepio = popart.PyStepIO(
            {stream.tensor_id: array for stream, array in arrays.items()},
            {stream.tensor_id: array for stream, array in outputs.items()},
        )
        stepio.enableRuntimeAsserts(False)
        self._pb_session.run(stepio)

    def run(self, inputs=None, downcast_inputs: bool = True) -> dict[DeviceToHostStream, np.ndarray]:
        """Runs the program on the arrays `inputs`, by their streams; returns an array for each stream to the host."""
        self._must_be_attached()
        outputs = self.create_host_outputs()
        self.run_with_outputs(inputs, outputs, downcast_inputs)
        return outputs

    def _check(self, kind: str, arrays, streams) -> None:
        """Every stream has an array of its shape, and no array is left over."""
        if set(arrays) != set(streams):
            unexpected, missing = (
                {str(stream) for stream in part} for part in (set(arrays) - set(streams), set(streams) - set(arrays))
            )
            raise ValueError(f"Unexpected/Missing {kind}.\n  Unexpected: {unexpected}\n  Missing: {missing}")
        for stream, array in arrays.items():
            full = self._full_shape(stream.shape)
            if array.shape != full and array.squeeze().shape != ():
                raise ValueError(
                    f"Shape mismatch for {kind} stream {stream.tensor_id}:\n"
                    f"Stream shape = {stream.shape}, therefore expected full global batch shape {full}. "
                    f"Got array shape = {array.shape}"
                )

    def weights_from_host(self) -> None:
        """Copies the variables to the device."""
        self._must_be_attached()
        self._pb_session.weightsFromHost()

    def weights_to_host(self) -> None:
        """Copies the variables back from the device."""
        self._must_be_attached()
        self._pb_session.weightsToHost()

    def get_tensor_data(self, tensor) -> np.ndarray:
        """The value of a variable or constant."""
        return self.get_tensors_data([tensor])[tensor]

    def get_tensors_data(self, tensors) -> dict:
        """The values of variables and constants."""
        for tensor in tensors:
            if not isinstance(tensor, (Variable, Constant)):
                raise TypeError(f"{tensor} is not of type Constant or Variable. get_tensor_data is not supported for this type.")
        if self.is_attached:
            self.weights_to_host()
        return {tensor: tensor._pb_tensor._data() for tensor in tensors}

    def write_variable_data(self, tensor: Variable, data) -> None:
        """Gives a variable a new value, also on the device inside of `with session:`."""
        self.write_variables_data({tensor: data})

    def write_variables_data(self, tensors: dict) -> None:
        """Gives variables new values, also on the device inside of `with session:`."""
        for tensor, data in tensors.items():
            array = np.asarray(data, order="C")
            if not isinstance(tensor, Variable):
                raise TypeError(f"Tensor {tensor.id} is not of type Variable. Type: {type(tensor)}")
            if array.dtype != tensor.dtype.as_numpy():
                raise TypeError(f"The dtype of the input array {array.dtype} must match the dtype of the tensor {tensor.dtype}")
            if array.shape != tensor.shape:
                raise ValueError(f"The shape of the input array {array.shape} must match the shape of the tensor {tensor.shape}")
            tensor._pb_tensor._set_data(array)
        if self.is_attached:
            self.weights_from_host()


def _device(kind: str):
    if kind not in ("ipu_model", "cpu"):
        raise ValueError(f"The emulation has no device {kind!r}: use 'ipu_model' or 'cpu'.")
    manager = popart.DeviceManager()
    device = manager.createIpuModelDevice({}) if kind == "ipu_model" else manager.createCpuDevice()
    device.detach()
    return device
