// Streams of Python generators: the generator runs on a thread of the pool, an async one on asyncio's, and what it
// yields is encoded there and put into a feed, from which the loop's thread passes it on as fast as the caller takes
// it. A full feed holds the generator up.
#pragma once

#include <nanobind/nanobind.h>

#include "wirecall/call.hpp"

namespace wirecall::python {

class AsyncCalls;
class PythonMethod;

/// Starts the stream that answers `call`. On the loop's thread, without the GIL.
void start_stream(const PythonMethod& method, Call& call, AsyncCalls& calls);

/// The same for one whose values are events, which go on when `call` has been answered.
void start_subscription(const PythonMethod& method, Call& call, AsyncCalls& calls);

void add_feed(nanobind::module_& module);

}  // namespace wirecall::python
