"""What the notebooks show with: pictures, widgets and the machine's facts. Nothing in the engine imports it.

Each name stands here once; what belongs to one lesson lies in its folder.
"""

# ruff: noqa: F401  the notebooks use what is imported here, as lessons.NAME

from minfer_lib.lessons.lesson_00.course_map import course_map
from minfer_lib.lessons.lesson_00.this_machine import machine
from minfer_lib.lessons.lesson_01.block_explorer import BlockExplorer
from minfer_lib.lessons.lesson_02.block_picture import block_picture
from minfer_lib.lessons.lesson_02.quantized_block import quantized
from minfer_lib.lessons.lesson_02.quantizer_playground import QuantizerPlayground
from minfer_lib.lessons.lesson_03.output_layout import layout_picture
from minfer_lib.lessons.lesson_03.paired_blocks import pair_picture
from minfer_lib.lessons.lesson_03.summation_orders import orders_picture
from minfer_lib.lessons.lesson_04.asm_listing import Listing, loop_of
from minfer_lib.lessons.lesson_04.kernel_speeds import speeds_picture
from minfer_lib.lessons.lesson_04.tile_operands import tile_operands
from minfer_lib.lessons.lesson_04.tile_stepper import TileStepper
from minfer_lib.lessons.lesson_04.two_by_two import two_by_two_picture
from minfer_lib.lessons.lesson_05.level_ladders import ladders_picture
from minfer_lib.lessons.lesson_05.preset_cost import presets_picture
from minfer_lib.lessons.lesson_05.search_player import SearchPlayer
from minfer_lib.lessons.lesson_06.any_machine import AnyMachine
from minfer_lib.lessons.lesson_06.chunk_trace import trace_picture
from minfer_lib.lessons.lesson_06.chunk_tracer import ChunkTracer, shortest
from minfer_lib.lessons.lesson_06.tile_order import tile_picture
from minfer_lib.lessons.lesson_06.ungated_pool import try_pool
from minfer_lib.lessons.lesson_07.geometry_explorer import GeometryExplorer
from minfer_lib.lessons.lesson_07.gpu_reports import measurements, rows_of
from minfer_lib.lessons.lesson_07.gpu_speeds import crossover_picture, launches_picture, rungs_picture
from minfer_lib.lessons.lesson_07.shuffle_tree import shuffle_tree
from minfer_lib.lessons.lesson_07.warp_stepper import WarpStepper
from minfer_lib.lessons.lesson_08.attention_shares import attention_picture
from minfer_lib.lessons.lesson_08.chat_panel import ChatPanel
from minfer_lib.lessons.lesson_08.next_token import next_token_picture
from minfer_lib.lessons.lesson_08.recorded_answers import recorded
from minfer_lib.lessons.lesson_08.sampler_explorer import SamplerExplorer
from minfer_lib.lessons.lesson_08.time_shares import time_picture
from minfer_lib.lessons.shared.block_bytes import Block
from minfer_lib.lessons.shared.course_model import course_model
from minfer_lib.lessons.shared.format_errors import formats_picture
from minfer_lib.lessons.shared.generation_panel import GenerationPanel
from minfer_lib.lessons.shared.glossary import glossary
from minfer_lib.lessons.shared.html_table import Table
from minfer_lib.lessons.shared.line_chart import lines_picture
from minfer_lib.lessons.shared.memory_roof import roof_picture
from minfer_lib.lessons.shared.model_outlines import bits_per_weight, outline
from minfer_lib.lessons.shared.passport import Passport
from minfer_lib.lessons.shared.predict import Predict
from minfer_lib.lessons.shared.preset_map import preset_map
from minfer_lib.lessons.shared.register_stepper import RegisterStepper
from minfer_lib.lessons.shared.snr import snr
from minfer_lib.lessons.shared.super_block import SuperBlock
from minfer_lib.lessons.shared.times_ladder import ladder_picture
