"""What the notebooks show with: pictures, widgets and the machine's facts. Nothing in the engine imports it."""

from minfer_lib.lessons.course import course_model
from minfer_lib.lessons.figures.attention_shares import attention_picture
from minfer_lib.lessons.figures.block_bytes import Block
from minfer_lib.lessons.figures.chunk_trace import trace_picture
from minfer_lib.lessons.figures.course_map import course_map
from minfer_lib.lessons.figures.errors import formats_picture, lines_picture
from minfer_lib.lessons.figures.gpu_speeds import crossover_picture, launches_picture, rungs_picture
from minfer_lib.lessons.figures.ladder import ladder_picture
from minfer_lib.lessons.figures.level_ladders import ladders_picture
from minfer_lib.lessons.figures.listing import Listing, loop_of
from minfer_lib.lessons.figures.next_token import next_token_picture
from minfer_lib.lessons.figures.orders import orders_picture
from minfer_lib.lessons.figures.output_layout import layout_picture
from minfer_lib.lessons.figures.paired_blocks import pair_picture
from minfer_lib.lessons.figures.preset_cost import presets_picture
from minfer_lib.lessons.figures.preset_map import preset_map
from minfer_lib.lessons.figures.quantized_block import block_picture
from minfer_lib.lessons.figures.roof import roof_picture
from minfer_lib.lessons.figures.shuffle_tree import shuffle_tree
from minfer_lib.lessons.figures.speeds import speeds_picture
from minfer_lib.lessons.figures.tiles import tile_picture
from minfer_lib.lessons.figures.time_shares import time_picture
from minfer_lib.lessons.figures.two_by_two import two_by_two_picture
from minfer_lib.lessons.gate import try_pool
from minfer_lib.lessons.glossary import glossary
from minfer_lib.lessons.golden import recorded
from minfer_lib.lessons.gpu_reports import measurements, rows_of
from minfer_lib.lessons.machine import machine
from minfer_lib.lessons.outline import bits_per_weight, outline
from minfer_lib.lessons.passport import Passport
from minfer_lib.lessons.quantized import quantized, snr
from minfer_lib.lessons.super_block import SuperBlock
from minfer_lib.lessons.table import Table
from minfer_lib.lessons.tile_operands import tile_operands
from minfer_lib.lessons.widgets.any_machine import AnyMachine
from minfer_lib.lessons.widgets.block_explorer import BlockExplorer
from minfer_lib.lessons.widgets.chat import ChatPanel
from minfer_lib.lessons.widgets.chunk_tracer import ChunkTracer, shortest
from minfer_lib.lessons.widgets.generation import GenerationPanel
from minfer_lib.lessons.widgets.geometry_explorer import GeometryExplorer
from minfer_lib.lessons.widgets.playground import QuantizerPlayground
from minfer_lib.lessons.widgets.predict import Predict
from minfer_lib.lessons.widgets.register_stepper import RegisterStepper
from minfer_lib.lessons.widgets.sampler_explorer import SamplerExplorer
from minfer_lib.lessons.widgets.search_player import SearchPlayer
from minfer_lib.lessons.widgets.tile_stepper import TileStepper
from minfer_lib.lessons.widgets.warp_stepper import WarpStepper

__all__ = [
    "AnyMachine", "Block", "BlockExplorer", "ChatPanel", "ChunkTracer", "GenerationPanel", "GeometryExplorer",
    "Listing", "Passport", "Predict", "QuantizerPlayground", "RegisterStepper", "SamplerExplorer", "SearchPlayer",
    "SuperBlock", "Table", "TileStepper", "WarpStepper", "attention_picture", "bits_per_weight", "block_picture",
    "course_map", "course_model", "crossover_picture", "formats_picture", "glossary", "ladder_picture",
    "ladders_picture", "launches_picture", "layout_picture", "lines_picture", "loop_of", "machine", "measurements",
    "next_token_picture", "orders_picture", "outline", "pair_picture", "preset_map", "presets_picture", "quantized",
    "recorded", "roof_picture", "rows_of", "rungs_picture", "shortest", "shuffle_tree", "snr", "speeds_picture",
    "tile_operands", "tile_picture", "time_picture", "trace_picture", "try_pool", "two_by_two_picture",
]  # fmt: skip
