// `wirecall serve FILE.py` and `wirecall serve MODULE`: the Python package serves that, and this process becomes
// Python.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace wirecall::cli {

/// Whether the arguments of a command line ask for a Python program to be served: one is FILE.py, or FILE.py:NAME.
[[nodiscard]] bool is_python_program(std::span<char* const> args);
/// Whether what `serve` has not understood asks for a Python module: MODULE:NAME, a name with dots, or one of a file or
/// folder here. Looks into the current folder.
[[nodiscard]] bool asks_for_module(const std::vector<std::string>& unexpected);
/// What is a module's name by its form among such arguments, and stands for none here; empty for none, and where a flag
/// is unknown.
[[nodiscard]] std::string missing_module(const std::vector<std::string>& unexpected);
/// Goes on as `python3 -m wirecall` with these arguments: the interpreter beside this command, as in a virtual
/// environment, that of the `venv` beside it, or else the first in PATH. One without the package says what to type.
/// Returns an exit status when there is no interpreter.
int exec_python(std::span<char* const> args);

}  // namespace wirecall::cli
