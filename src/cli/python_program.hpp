// `wirecall serve FILE.py`: the Python package serves that, and this process becomes Python.
#pragma once

#include <span>

namespace wirecall::cli {

/// Whether the words of a command line ask for a Python program to be served: one is FILE.py, or FILE.py:NAME.
[[nodiscard]] bool asks_for_python(std::span<char* const> words);
/// Goes on as `python3 -m wirecall` with these words: the interpreter beside this command, as in a virtual environment,
/// or else the first in PATH. Returns an exit status when there is none.
int become_python(std::span<char* const> words);

}  // namespace wirecall::cli
