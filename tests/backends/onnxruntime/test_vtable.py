"""The functions of ONNX Runtime's table that `opc/adapters/onnxruntime.h` uses are where it looks for them in the installed
runtime."""

import ctypes
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnxruntime
import pytest

HEADER = Path(__file__).parents[3] / "runtime" / "include" / "opc" / "adapters" / "onnxruntime.h"
INDEX = {name: int(index) for name, index in re.findall(r"using (\w+) = Entry<(\d+),", HEADER.read_text())}

# What only ONNX Runtime can call us with; `test_library.py` and `test_cuda.py` prove these by what a library sees.
INSIDE = {
    "CustomOpDomainAdd", "GetTensorMutableData", "GetTensorTypeAndShape", "KernelInfoFloat", "KernelInfoInt", "KernelInfoString",
    "KernelInfoFloats", "KernelInfoInts", "GetInputCount", "GetInput", "GetOutput", "InferInputCount", "InferInputType",
    "InferAttribute", "InferSetOutput", "ReadOpAttr", "ParallelFor", "GetGpuComputeStream", "GetScratchBuffer",
    "KernelInfoGetAllocator", "ReleaseAllocator",
}  # fmt: skip
GET_ERROR_CODE, GET_ERROR_MESSAGE, CREATE_SESSION_OPTIONS, RELEASE_SESSION_OPTIONS = 1, 2, 10, 100
GET_DEFAULT_ALLOCATOR = 78

Pointer = ctypes.c_void_p


class Table:
    """The runtime's table, functions called by index."""

    def __init__(self) -> None:
        folder = Path(onnxruntime.__file__).parent / "capi"
        library = ctypes.CDLL(str(next(iter(sorted(folder.glob("libonnxruntime.so*"))))))
        library.OrtGetApiBase.restype = ctypes.POINTER(Pointer)
        get_api = ctypes.CFUNCTYPE(Pointer, ctypes.c_uint32)(library.OrtGetApiBase()[0])
        version = int(re.search(r"kApiVersion = (\d+)", HEADER.read_text()).group(1))
        self.functions = ctypes.cast(get_api(version), ctypes.POINTER(Pointer))

    def call(self, index: int | str, *arguments: Any, result: Any = Pointer) -> Any:
        """Call a function by its number, or by its name in the header."""
        position = INDEX[index] if isinstance(index, str) else index
        kinds = [type(a) if isinstance(a, ctypes._SimpleCData) else Pointer for a in arguments]
        function = ctypes.CFUNCTYPE(result, *kinds)(self.functions[position])
        return function(*(a if isinstance(a, ctypes._SimpleCData) else ctypes.cast(a, Pointer) for a in arguments))

    def ok(self, index: int | str, *arguments: Any) -> None:
        """Call a function that must succeed."""
        assert self.call(index, *arguments) is None


@pytest.fixture(scope="module")
def table() -> Table:
    return Table()


@pytest.fixture
def options(table: Table) -> Iterator[Pointer]:
    made = Pointer()
    table.ok(CREATE_SESSION_OPTIONS, ctypes.byref(made))
    yield made
    table.call(RELEASE_SESSION_OPTIONS, made, result=None)


def test_every_entry_is_tested() -> None:
    source = Path(__file__).read_text()
    assert {n for n in INDEX if f'"{n}"' not in source} == set()


def test_status(table: Table) -> None:
    status = Pointer(table.call("CreateStatus", ctypes.c_int(2), ctypes.c_char_p(b"a message")))
    assert table.call(GET_ERROR_CODE, status, result=ctypes.c_int) == 2
    assert table.call(GET_ERROR_MESSAGE, status, result=ctypes.c_char_p) == b"a message"
    table.call("ReleaseStatus", status, result=None)


def test_type_and_shape(table: Table) -> None:
    info = Pointer()
    table.ok("CreateTypeAndShape", ctypes.byref(info))
    table.ok("SetElementType", info, ctypes.c_int(11))
    element = ctypes.c_int()
    table.ok("GetElementType", info, ctypes.byref(element))
    assert element.value == 11
    table.ok("SetDimensions", info, (ctypes.c_int64 * 3)(4, -1, 6), ctypes.c_size_t(3))
    count = ctypes.c_size_t()
    table.ok("GetDimensionsCount", info, ctypes.byref(count))
    assert count.value == 3
    sizes = (ctypes.c_int64 * 3)()
    table.ok("GetDimensions", info, sizes, ctypes.c_size_t(3))
    assert list(sizes) == [4, -1, 6]
    table.ok("SetSymbolicDimensions", info, (ctypes.c_char_p * 3)(b"", b"N", b""), ctypes.c_size_t(3))
    names = (ctypes.c_char_p * 3)()
    table.ok("GetSymbolicDimensions", info, names, ctypes.c_size_t(3))
    assert list(names) == [b"", b"N", b""]
    table.call("ReleaseTypeAndShape", info, result=None)


def test_allocator(table: Table) -> None:
    allocator, memory, place = Pointer(), Pointer(), Pointer()
    table.ok(GET_DEFAULT_ALLOCATOR, ctypes.byref(allocator))
    table.ok("AllocatorAlloc", allocator, ctypes.c_size_t(64), ctypes.byref(memory))
    ctypes.memset(memory, 0, 64)
    table.ok("AllocatorFree", allocator, memory)
    table.ok("AllocatorGetInfo", allocator, ctypes.byref(place))
    device = ctypes.c_int(7)
    table.ok("MemoryInfoGetId", place, ctypes.byref(device))
    assert device.value == 0


def test_session_configuration(table: Table, options: Pointer) -> None:
    found = ctypes.c_int(7)
    table.ok("HasSessionConfigEntry", options, ctypes.c_char_p(b"key"), ctypes.byref(found))
    assert found.value == 0
    table.ok("AddSessionConfigEntry", options, ctypes.c_char_p(b"key"), ctypes.c_char_p(b"value"))
    table.ok("HasSessionConfigEntry", options, ctypes.c_char_p(b"key"), ctypes.byref(found))
    assert found.value == 1
    size, text = ctypes.c_size_t(16), ctypes.create_string_buffer(16)
    table.ok("GetSessionConfigEntry", options, ctypes.c_char_p(b"key"), text, ctypes.byref(size))
    assert (text.value, size.value) == (b"value", 6)


def test_domain(table: Table, options: Pointer) -> None:
    domain = Pointer()
    table.ok("CreateCustomOpDomain", ctypes.c_char_p(b"opc.test"), ctypes.byref(domain))
    assert domain.value
    table.ok("AddCustomOpDomain", options, domain)
