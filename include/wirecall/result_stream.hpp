// ResultStream: the results of one call, as they come. Made by Client::stream; the call is made when the first result
// is asked for. It blocks, item by item, or becomes a Stream for co_await. The server sends no more than it has been
// given credit for, and credit is given as results are taken: who stops taking them stops the server, and who drops the
// stream ends the call.
// Not a Stream, which is what handlers make results with. One thread at a time.
#pragma once

#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

#include "wirecall/request.hpp"
#include "wirecall/stream.hpp"

namespace wirecall {

namespace session {
class ClientStream;
}  // namespace session

/// Results that may be on their way at once, where Client::stream says nothing else.
inline constexpr std::uint32_t kStreamCredit = 64;

namespace detail {

/// A stream of encoded items. One owner.
class IncomingStream {
 public:
  IncomingStream(OutgoingCall call, std::uint32_t credit);
  IncomingStream(IncomingStream&&) noexcept;
  ~IncomingStream();

  // No effect once an item has been asked for.
  void set_timeout(std::chrono::milliseconds timeout) noexcept;
  void set_stop(std::stop_token stop);
  void set_context(const Context& context);
  void set_to(std::string_view provider);

  enum class Next : std::uint8_t { item, end, none };
  /// Blocks until there is an item, or the end.
  [[nodiscard]] Next wait();
  /// Does not block: for `none`, `wake` is called once, unless `forget` is before.
  [[nodiscard]] Next poll(std::function<void()> wake);
  void forget() noexcept;
  /// The home of the thread that drives.
  [[nodiscard]] const Home* driver();

  /// The item that was taken last.
  [[nodiscard]] Reader& item();
  /// At the end: throws what the call ended with, if that is an error.
  void throw_if_failed() const;

 private:
  [[nodiscard]] session::ClientStream& begun();

  OutgoingCall call_;
  std::unique_ptr<session::ClientStream> stream_;  // has taken the call over; null until an item is asked for
};

/// Waits for the next item of a stream.
class ItemAwaiter final : private Waiter {
 public:
  explicit ItemAwaiter(IncomingStream& stream) noexcept : stream_(&stream) {}
  ~ItemAwaiter() { forget(); }

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> coroutine) {
    return suspend(*coroutine.promise().root);
  }
  /// False: look again.
  [[nodiscard]] IncomingStream::Next await_resume() const {
    throw_if_stopped();
    return next_;
  }

 private:
  struct Nothing {};
  using Away = Absence<ItemAwaiter, Nothing>;
  friend Away;

  bool suspend(Root& root);
  void come_home(Nothing&) noexcept { come_home(); }
  void come_home() noexcept;
  void forget() noexcept override;

  IncomingStream* stream_;
  std::shared_ptr<Away> away_;  // null where the task has no home
  IncomingStream::Next next_ = IncomingStream::Next::none;
  bool waiting_ = false;
};

template <class T>
T read_item(IncomingStream& stream) {
  Answer answer{stream.item()};
  return value_of<T>(answer);
}

template <class T>
Stream<T> items_of(IncomingStream stream) {
  for (;;) {
    const IncomingStream::Next next = co_await ItemAwaiter{stream};
    if (next == IncomingStream::Next::end) break;
    if (next == IncomingStream::Next::item) co_yield read_item<T>(stream);
  }
  stream.throw_if_failed();
}

}  // namespace detail

template <class T>
class [[nodiscard]] ResultStream {
 public:
  explicit ResultStream(detail::IncomingStream stream) noexcept : stream_(std::move(stream)) {}

  // These are said before the first result is asked for; later they have no effect. They return the stream itself, not
  // a reference, for the sake of `for (int i : client.stream<int>("count", 5).timeout(1s))`.

  /// How long all of it may take, from the first result's being asked for to the end; the server is told as well.
  /// ClientOptions::call_timeout_ms goes on to bound the time without a result.
  ResultStream timeout(std::chrono::milliseconds timeout) && {
    stream_.set_timeout(timeout);
    return std::move(*this);
  }
  /// Gives the call up when stop is requested, on any thread: what has come can still be taken, then it ends with
  /// -32800.
  ResultStream stop(std::stop_token stop) && {
    stream_.set_stop(std::move(stop));
    return std::move(*this);
  }
  /// For a handler: see Request::within. What is left of its call's time is for all of the stream.
  ResultStream within(const Context& context) && {
    stream_.set_context(context);
    return std::move(*this);
  }
  /// At a broker, of one provider: see Request::to.
  ResultStream to(std::string_view provider) && {
    stream_.set_to(provider);
    return std::move(*this);
  }

  /// Blocks for the next result; empty at the end, and for ever after. Throws the Error that the call has ended with
  /// (see Client::call), and LocalError -32603 for a result that is no T.
  [[nodiscard]] std::optional<T> next() {
    if (stream_.wait() == detail::IncomingStream::Next::item) return detail::read_item<T>(stream_);
    stream_.throw_if_failed();
    return std::nullopt;
  }

  /// for (int value : client.stream<int>("count", 5)) …
  class iterator {
   public:
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using iterator_concept = std::input_iterator_tag;

    explicit iterator(ResultStream& stream) : stream_(&stream), value_(stream.next()) {}
    [[nodiscard]] T& operator*() const noexcept { return *value_; }
    iterator& operator++() {
      value_ = stream_->next();
      return *this;
    }
    void operator++(int) { ++*this; }
    [[nodiscard]] bool operator==(std::default_sentinel_t) const noexcept { return !value_; }

   private:
    ResultStream* stream_;
    mutable std::optional<T> value_;
  };
  [[nodiscard]] iterator begin() { return iterator{*this}; }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

  /// The same results for a coroutine: Stream<int> items = client.stream<int>("count", 5).awaited();
  [[nodiscard]] Stream<T> awaited() && { return detail::items_of<T>(std::move(stream_)); }

 private:
  detail::IncomingStream stream_;
};

}  // namespace wirecall
