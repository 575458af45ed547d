"""Writes a small safetensors file of bf16 weights, the same on every machine: small_model.py OUT."""
import json
import random
import struct
import sys

SHAPES = {"layer.0.up_proj.weight": (512, 256), "layer.0.down_proj.weight": (256, 512), "norm.weight": (256,)}


def bf16(value):
    return struct.unpack("<I", struct.pack("<f", value))[0] >> 16


def main(path):
    rng = random.Random(1)
    header, data = {}, bytearray()
    for name, shape in SHAPES.items():
        start, count = len(data), 1
        for extent in shape:
            count *= extent
        data += struct.pack(f"<{count}H", *(bf16(rng.gauss(0, 0.02)) for _ in range(count)))
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [start, len(data)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


main(sys.argv[1])
