// A Python function that is called once for many calls, as a Binding: each call is gathered with its params as they
// came (wirecall/detail/batcher.hpp), decoded when its batch is run, and given with the others to a function of
// wirecall/_batching.py, which returns what each comes to. Plain functions run on a thread of the pool, async ones on
// the thread of an asyncio loop. Made with the GIL.
#pragma once

#include <memory>
#include <nanobind/nanobind.h>
#include <tuple>

#include "method.hpp"

namespace wirecall::python {

class AsyncCalls;

/// Size, microseconds of waiting (-1: to be found out), bytes, batches at once, calls that wait, their bytes, rows.
using BatchBounds =
    std::tuple<std::size_t, std::int64_t, std::size_t, std::size_t, std::size_t, std::size_t, std::size_t>;

/// `method` describes one call. `run` takes a list of tuples, each the arguments of one call, and returns a list of as
/// many results: an Error fails its own call. `weigh` takes such a tuple and a context, and returns how many rows the
/// call has and its priority; None where neither is asked for.
[[nodiscard]] detail::Binding bind_batched(std::unique_ptr<PythonMethod> method, nanobind::object run,
                                           nanobind::object weigh, const BatchBounds& bounds,
                                           std::shared_ptr<AsyncCalls> calls);

}  // namespace wirecall::python
