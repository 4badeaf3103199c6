"""What the notebooks show with: pictures, widgets and the machine's facts. Nothing in the engine imports it."""

from minfer_lib.lessons.course import course_model
from minfer_lib.lessons.figures.block_bytes import Block
from minfer_lib.lessons.figures.course_map import course_map
from minfer_lib.lessons.figures.errors import formats_picture, lines_picture
from minfer_lib.lessons.figures.ladder import ladder_picture
from minfer_lib.lessons.figures.next_token import next_token_picture
from minfer_lib.lessons.figures.orders import orders_picture
from minfer_lib.lessons.figures.output_layout import layout_picture
from minfer_lib.lessons.figures.paired_blocks import pair_picture
from minfer_lib.lessons.figures.preset_map import preset_map
from minfer_lib.lessons.figures.quantized_block import block_picture
from minfer_lib.lessons.figures.roof import roof_picture
from minfer_lib.lessons.machine import machine
from minfer_lib.lessons.outline import bits_per_weight, outline
from minfer_lib.lessons.passport import Passport
from minfer_lib.lessons.quantized import quantized, snr
from minfer_lib.lessons.table import Table
from minfer_lib.lessons.widgets.block_explorer import BlockExplorer
from minfer_lib.lessons.widgets.generation import GenerationPanel
from minfer_lib.lessons.widgets.playground import QuantizerPlayground
from minfer_lib.lessons.widgets.predict import Predict

__all__ = [
    "Block", "BlockExplorer", "GenerationPanel", "Passport", "Predict", "QuantizerPlayground", "Table",
    "bits_per_weight", "block_picture", "course_map", "course_model", "formats_picture", "ladder_picture",
    "layout_picture", "lines_picture", "machine", "next_token_picture", "orders_picture", "outline", "pair_picture",
    "preset_map", "quantized", "roof_picture", "snr",
]  # fmt: skip
