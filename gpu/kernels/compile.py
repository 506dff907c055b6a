#!/usr/bin/env python3
"""Compiles the kernels of this folder, and those that the checker of scopes is tested with, to PTX with NVRTC, from the wheel
nvidia-cuda-nvrtc that the running Python has.

    compile.py            writes ptx/NAME.ptx for every NAME.cu
    compile.py --check    writes nothing; says which differ, and exits with 1 if any does
"""

import ctypes
import importlib.util
import pathlib
import sys

FOLDER = pathlib.Path(__file__).parent
# Without fused multiply-add a float result is that of the expression as it is written, on the
# processor, too.
OPTIONS = [b"--gpu-architecture=compute_90", b"--std=c++17", b"--fmad=false"]
# What the checker of scopes finds is told by the line of the source.
FOLDERS = {FOLDER: OPTIONS, FOLDER.parent / "sbrp" / "kernels": [*OPTIONS, b"--generate-line-info"]}


def library():
    spec = importlib.util.find_spec("nvidia")
    for root in spec.submodule_search_locations if spec else []:
        for found in sorted(pathlib.Path(root).glob("*/lib/libnvrtc.so.*")):
            if "alt" not in found.name:
                # NVRTC opens it by its name, without a path: it must be there already.
                for builtins in found.parent.glob("libnvrtc-builtins.so.*"):
                    if "alt" not in builtins.name:
                        ctypes.CDLL(str(builtins), mode=ctypes.RTLD_GLOBAL)
                return ctypes.CDLL(str(found))
    sys.exit("compile.py: no NVRTC: install the wheel nvidia-cuda-nvrtc for this Python")


def compiled(nvrtc, source, given):
    """PTX of a file."""
    headers = sorted(FOLDER.glob("*.cuh"))
    texts = (ctypes.c_char_p * len(headers))(*[header.read_bytes() for header in headers])
    names = (ctypes.c_char_p * len(headers))(*[header.name.encode() for header in headers])
    program = ctypes.c_void_p()
    name = source.name.encode()
    checked(nvrtc, nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.read_bytes(), name, len(headers), texts, names))
    options = (ctypes.c_char_p * len(given))(*given)
    if nvrtc.nvrtcCompileProgram(program, len(given), options):
        print(text(nvrtc, program, "ProgramLog").decode(), file=sys.stderr)
        sys.exit(f"compile.py: {source.name} does not compile")
    ptx = text(nvrtc, program, "PTX")
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return ptx


def text(nvrtc, program, what):
    size = ctypes.c_size_t()
    checked(nvrtc, getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(size.value)
    checked(nvrtc, getattr(nvrtc, f"nvrtcGet{what}")(program, buffer))
    return buffer.value


def checked(nvrtc, code):
    if code:
        nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
        sys.exit(f"compile.py: NVRTC: {nvrtc.nvrtcGetErrorString(code).decode()}")


def main():
    nvrtc = library()
    differing = []
    for folder, options in FOLDERS.items():
        (folder / "ptx").mkdir(exist_ok=True)
        for source in sorted(folder.glob("*.cu")):
            target = folder / "ptx" / f"{source.stem}.ptx"
            # Line information names files; where this is run is not part of it.
            ptx = compiled(nvrtc, source, options).replace(f'"{pathlib.Path.cwd()}/'.encode(), b'"')
            if sys.argv[1:] != ["--check"]:
                target.write_bytes(ptx)
            elif not target.exists() or target.read_bytes() != ptx:
                differing.append(target.name)
    if differing:
        sys.exit(f"compile.py: not what NVRTC makes of the sources: {', '.join(differing)}; run ./x kernels")


main()
