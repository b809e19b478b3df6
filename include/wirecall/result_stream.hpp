// ResultStream<T>: the client's side of one server-streaming call, as gRPC's ClientReader<T>: it reads the results of
// the call one by one as they come. Client::stream makes it; the call is sent when the first result is asked for.
// Reading blocks the thread, or `awaited` turns it into a Stream for co_await. The server sends as many results as it
// has credit for, and each result that is taken gives it credit again. So a consumer that stops reading stops the
// server, and destroying the ResultStream cancels the call.
// Not a Stream, which is what a handler yields results from. One thread at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

#include "wirecall/detail/outputs.hpp"
#include "wirecall/request.hpp"
#include "wirecall/stream.hpp"

namespace wirecall {

namespace net {
class ClientStream;
}  // namespace net

/// Results that a server may send ahead of the consumer: the credit of Client::stream.
inline constexpr std::uint32_t kStreamCredit = 64;

namespace detail {

/// What a stream brings back at its end, whatever the types of the variables.
class StreamOutputs {
 public:
  StreamOutputs() = default;
  StreamOutputs(StreamOutputs&&) = delete;
  virtual ~StreamOutputs() = default;
  /// Decodes the final result and writes the variables. Throws where it does not fit.
  virtual void take(Answer& result) = 0;
};

template <class... Ts>
class StreamOutputsOf final : public StreamOutputs {
 public:
  explicit StreamOutputsOf(Variables<Ts...> variables) noexcept : variables_(variables) {}
  void take(Answer& result) override { deliver(value_of<Returned<void, Ts...>>(result), variables_); }

 private:
  Variables<Ts...> variables_;
};

/// Null where there are no variables.
template <class... Ts>
std::unique_ptr<StreamOutputs> stream_outputs(Variables<Ts...> variables) {
  if constexpr (sizeof...(Ts) == 0) {
    return nullptr;
  } else {
    return std::make_unique<StreamOutputsOf<Ts...>>(variables);
  }
}

/// Reads the encoded items of one call. One owner.
class ItemReader {
 public:
  /// `outputs` may be null.
  ItemReader(OutgoingCall call, std::uint32_t credit, std::unique_ptr<StreamOutputs> outputs = nullptr);
  ItemReader(ItemReader&&) noexcept;
  ~ItemReader();

  /// To be changed until the first item is asked for; null from then on.
  [[nodiscard]] OutgoingCall* unsent() noexcept { return stream_ == nullptr ? &call_ : nullptr; }

  enum class Next : std::uint8_t { item, end, none };
  /// Blocks until there is an item, or the end.
  [[nodiscard]] Next wait();
  /// Does not block. After `none`, `wake` is called once, unless `forget` is called first.
  [[nodiscard]] Next poll(std::function<void()> wake);
  void forget() noexcept;
  /// The executor of the thread that drives the client.
  [[nodiscard]] const Executor* driver();

  /// The item that was taken last.
  [[nodiscard]] Reader& item();
  /// At the end: throws the error that the call has ended with, if there is one; else the variables are written.
  void finish();

 private:
  [[nodiscard]] net::ClientStream& begun();

  OutgoingCall call_;
  std::unique_ptr<StreamOutputs> outputs_;     // null where there are none, and when they have been taken
  std::unique_ptr<net::ClientStream> stream_;  // has taken the call over; null until an item is asked for
};

struct NoPayload {};

/// Awaits the next item.
class ItemAwaiter final : public DrivenAwaiter<ItemAwaiter, NoPayload> {
 public:
  explicit ItemAwaiter(ItemReader& stream) noexcept : stream_(&stream) {}
  ~ItemAwaiter() { forget(); }

  /// `none` means: poll again.
  [[nodiscard]] ItemReader::Next await_resume() const {
    throw_if_stopped();
    return next_;
  }

 private:
  friend Driven;
  friend Pending;
  [[nodiscard]] const Executor* driver() const noexcept { return stream_->driver(); }
  bool begin(const std::shared_ptr<Pending>& pending);
  void take(NoPayload&) noexcept {}
  void give_up(bool) noexcept { stream_->forget(); }

  ItemReader* stream_;
  ItemReader::Next next_ = ItemReader::Next::none;
};

template <class T>
T read_item(ItemReader& stream) {
  Answer answer{stream.item()};
  return value_of<T>(answer);
}

template <class T>
Stream<T> items_of(ItemReader stream) {
  for (;;) {
    const ItemReader::Next next = co_await ItemAwaiter{stream};
    if (next == ItemReader::Next::end) break;
    if (next == ItemReader::Next::item) co_yield read_item<T>(stream);
  }
  stream.finish();
}

}  // namespace detail

template <class T>
class [[nodiscard]] ResultStream {
 public:
  explicit ResultStream(detail::ItemReader stream) noexcept : stream_(std::move(stream)) {}

  // These have no effect after the first result has been asked for. They return the stream by value, so that
  // `for (int i : client.stream<int>("count", 5).timeout(1s))` does not dangle.

  /// Bounds the time of the whole stream, from when the first result is asked for; the server is told as well. The wait
  /// for each result is bounded by ClientOptions::call_timeout_ms in any case.
  ResultStream timeout(std::chrono::milliseconds timeout) && {
    if (detail::OutgoingCall* const call = stream_.unsent()) call->set_timeout(timeout);
    return std::move(*this);
  }
  /// Cancels the call when stop is requested, on any thread. Results that have come can still be read; then the stream
  /// ends with -32800.
  ResultStream stop(std::stop_token stop) && {
    if (detail::OutgoingCall* const call = stream_.unsent()) call->set_stop(std::move(stop));
    return std::move(*this);
  }
  /// Makes the call as part of the call that a handler serves: see Request::within. The whole stream has what is left
  /// of that call's time.
  ResultStream within(const Context& context) && {
    if (detail::OutgoingCall* const call = stream_.unsent()) call->set_context(context);
    return std::move(*this);
  }
  /// Calls one provider of a broker: see Request::to.
  ResultStream to(std::string_view provider) && {
    if (detail::OutgoingCall* const call = stream_.unsent()) call->set_to(provider);
    return std::move(*this);
  }

  /// Sends a stream towards the handler while its results come: see Request::input. Items go out as the server makes
  /// room for them, while somebody waits for results or drives the client.
  template <class Source>
  ResultStream input(Source&& source) && {
    if (detail::OutgoingCall* const call = stream_.unsent())
      call->set_input(detail::input_source(std::forward<Source>(source)));
    return std::move(*this);
  }

  /// Blocks until the next result; nullopt at the end and from then on. Throws the Error that the call has ended with
  /// (see Client::call), and LocalError -32603 for a result that is not a T.
  [[nodiscard]] std::optional<T> next() {
    if (stream_.wait() == detail::ItemReader::Next::item) return detail::read_item<T>(stream_);
    stream_.finish();
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

  /// The same results, for a coroutine to await: Stream<int> items = client.stream<int>("count", 5).awaited();
  [[nodiscard]] Stream<T> awaited() && { return detail::items_of<T>(std::move(stream_)); }

 private:
  detail::ItemReader stream_;
};

}  // namespace wirecall
