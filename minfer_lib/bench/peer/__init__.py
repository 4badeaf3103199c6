"""llama.cpp beside us: both engines on the same file, turn by turn in one run. Needs the extra "peer"."""
