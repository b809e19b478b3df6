// ClientStream: the results of one call as they come, between the connection that receives them and the one consumer
// that takes them. The consumer grants credit as it takes, so a consumer that stops stops the server, and no more than
// the first credit's number of items waits here.
// Owned by its consumer. What both sides touch is guarded by the client's mutex.
#pragma once

#include <functional>

#include "client/core.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/codec.hpp"

namespace wirecall::net {

class ClientStream {
 public:
  /// `call` has been written and given credit, and is the stream's from here on.
  ClientStream(std::shared_ptr<ClientCore> core, ClientCall& call) noexcept
      : core_(std::move(core)), call_(&call), credit_(call.credit) {}
  ClientStream(ClientStream&&) = delete;
  /// Gives the call up where it has not ended.
  ~ClientStream();

  enum class Next : std::uint8_t {
    item,  ///< `item` is there
    end,   ///< and `error`, if the call has failed
    none,  ///< nothing yet; `wake` will be called once
  };
  /// Blocks until there is an item or the end.
  [[nodiscard]] Next wait();
  /// Does not block; what `wake` resumes runs on the thread that drives.
  [[nodiscard]] Next poll(std::function<void()> wake);
  /// Poll's `wake` is not called any more.
  void forget() noexcept;

  /// The final result is {"return", "out"}, of which only the first are items. Before the first item is asked for.
  void expect_outputs() noexcept { has_outputs_ = true; }

  [[nodiscard]] const detail::Executor* driver() const noexcept { return core_->executor().get(); }

  /// The item that was taken last; until the next is.
  [[nodiscard]] Reader& item();
  /// At the end, without an error: the final result.
  [[nodiscard]] Reader& result();
  [[nodiscard]] const Error* error() const noexcept { return call_->error ? &*call_->error : nullptr; }
  [[nodiscard]] detail::ErrorClass error_class() const noexcept { return call_->error_class; }

  // ---- the connection's side, with the mutex held ----

  /// Why the item with that number cannot be the next; empty when it is.
  [[nodiscard]] std::string_view fault_of(std::uint64_t seq) const noexcept;
  /// The next item has come.
  void add(std::string_view value, Encoding encoding);
  /// The call has ended; a result that it has is items.
  void call_ended();
  /// All of the stream has to have come by then.
  [[nodiscard]] std::chrono::nanoseconds whole_until() const noexcept { return whole_until_; }
  /// What the consumer waits with; to be called, and destroyed, without the mutex. It may be empty.
  [[nodiscard]] std::function<void()> take_wake() noexcept { return std::exchange(wake_, nullptr); }

 private:
  /// Values, each in the encoding in which it came.
  struct Items {
    struct End {
      std::size_t at;
      Encoding encoding;
    };
    Buffer bytes;
    std::vector<End> ends;
    void add(std::string_view item, Encoding encoding) {
      bytes.append(item);
      if (encoding == Encoding::json) bytes.push_back('\n');  // a number ends where something else stands
      ends.push_back({.at = bytes.size(), .encoding = encoding});
    }
    void clear() noexcept {
      bytes.clear();
      ends.clear();
    }
  };

  void begin(bool asynchronous);
  [[nodiscard]] bool take();
  [[nodiscard]] bool hand_over();
  [[nodiscard]] bool wait_for_items();
  [[nodiscard]] bool refuse_to_block();
  [[nodiscard]] std::chrono::nanoseconds begin_waiting(std::chrono::nanoseconds now);
  void grant();

  const std::shared_ptr<ClientCore> core_;
  ClientCall* const call_;
  const std::uint32_t credit_;
  bool begun_ = false;
  bool has_outputs_ = false;

  // The consumer's.
  Items taken_;
  std::size_t at_ = 0;          // of the next item in taken_
  std::uint32_t consumed_ = 0;  // since credit was granted last
  std::unique_ptr<Reader> reader_;

  // Guarded by the mutex.
  Items arrived_;
  std::uint32_t granted_ = 0;  // items that may still come
  std::uint64_t next_seq_ = 0;
  bool ended_ = false;
  std::chrono::nanoseconds whole_until_ = std::chrono::nanoseconds::max();  // all of it has to have come
  std::function<void()> wake_;
};

}  // namespace wirecall::net
