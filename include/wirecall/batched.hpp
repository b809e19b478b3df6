// batched: a function that is called once for many calls, as models and stores want to be (docs/batching.md):
//     std::vector<Embedding> embed(const std::vector<std::string>& texts);
//     server.batch_method("embed", embed, {.size = 64, .wait = 2ms}, {"text"});
// Peers call `embed` with one text, and are answered with one Embedding: what they see is a method like any other. The
// calls of all connections, and of clients' batches, are gathered; each keeps its own deadline, cancellation and
// errors.
#pragma once

#include <type_traits>
#include <utility>

#include "wirecall/batch_options.hpp"
#include "wirecall/detail/bind_batched.hpp"

namespace wirecall {

/// Marks a function that takes a batch: server.method("embed", wirecall::batched(embed, {.size = 64}), {"text"}). Its
/// parameters are std::vector<T>, `const std::vector<T>&` or std::span<const T>, of the calls' arguments in one order,
/// or Shared<T>; a first one of std::vector<Context>, or such a span, has the calls' contexts. It returns a std::vector
/// of as many results, in the same order, or a Task of one; void for none. An element std::expected<T, Error> that is
/// an error fails its own call. An exception fails all calls of the batch, as does another number of results (-32603,
/// and the log says so). A plain function runs on the pool of `blocking_threads`, and on the loop where there is none.
/// What its elements borrow, as std::string_view does, lasts until it returns, of a coroutine until it ends.
///
/// One that returns a std::vector<Stream<T>>, or one of std::expected<Stream<T>, Error>, or a Task of these, gives each
/// call a stream of its own, which is passed on as that of a function that returns a Stream: on the call's own loop,
/// once the batch is over. What the call's elements borrow then lasts until its stream has ended; the vectors, and what
/// a Shared borrows, do not. The contexts have the timers of their own calls' loops, which only the streams may use.
template <class F>
[[nodiscard]] detail::Binding batched(F&& function, BatchOptions options = {}) {
  return detail::bind_batched(std::decay_t<F>(std::forward<F>(function)), std::move(options));
}

}  // namespace wirecall
