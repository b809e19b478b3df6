// ReceivedInput: the stream that a caller sends towards the handler of its call. The handler gives the caller credit by
// reading, so that no more items wait here than it has been given credit for: 4 at first, and once it is known how
// large they are, up to 64 that together fill Limits::soft_output. What waits counts among what is held for the
// connection. One thread. Implements docs/wire.md "Streams towards a handler".
#pragma once

#include "rpc/load_bytes.hpp"
#include "rpc/loop_context.hpp"
#include "rpc/message_sink.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/error.hpp"
#include "wirecall/input_stream.hpp"
#include "wirecall/limits.hpp"

namespace wirecall::rpc {

/// One rpc.item of a caller's; its value in its encoding.
struct InputItem {
  std::uint64_t sequence = 0;
  EncodedText value;  ///< empty for the end
};

class ReceivedInput final : public wirecall::detail::Input {
 public:
  /// `id_json` is the request's. All that is referred to is used until `call_ended`.
  ReceivedInput(MessageSink& sink, LoopContext& loop, const Limits& limits, MessageForm form, std::string_view id_json,
                std::shared_ptr<PeerLoad> load);

  /// The caller's next item, or its end. Returns why that ends the call; nothing where it does not. May wake the
  /// handler, and end `this`.
  [[nodiscard]] std::optional<Error> add(const InputItem& item);
  /// The caller says nothing any more: a stream that it has not ended fails; as add.
  void peer_ended();
  /// The call is over: no credit is given any more, and nothing is read.
  void call_ended() noexcept;
  /// When the next item has to have come, after at most `gap_max` without one. Time in which the caller has no credit
  /// does not count.
  [[nodiscard]] std::chrono::nanoseconds next_due(std::chrono::nanoseconds gap_max) const noexcept;

 private:
  /// Values, each in the encoding in which it came.
  struct Values {
    struct End {
      std::size_t at;
      Encoding encoding;
    };
    Buffer bytes;
    std::vector<End> ends;
    [[nodiscard]] std::size_t size() const noexcept { return bytes.size(); }
  };

  [[nodiscard]] bool ask() override;
  [[nodiscard]] Reader* take() override;
  [[nodiscard]] Error refuse() override;
  [[nodiscard]] std::size_t unread() const noexcept { return arrived_.ends.size() + taken_.ends.size() - at_; }
  [[nodiscard]] bool fits(std::size_t bytes) const noexcept;
  void give_credit();
  void send_credit(std::uint64_t more);
  void touch() noexcept;

  MessageSink* sink_;
  LoopContext* loop_;
  std::size_t window_bytes_;
  std::size_t held_max_;
  MessageForm form_;
  std::string id_json_;
  std::shared_ptr<PeerLoad> load_;
  HeldBytes held_;
  Values arrived_;
  Values taken_;        // being read
  std::size_t at_ = 0;  // of the next value in taken_
  std::unique_ptr<Reader> reader_;
  std::optional<Error> failure_;
  std::uint64_t credit_ = 0;  // items that may still come
  std::uint64_t next_sequence_ = 0;
  std::uint64_t read_sequence_ = 0;  // of the next item that is taken
  std::size_t item_bytes_ = 0;       // of the largest item so far
  std::chrono::nanoseconds last_;
  bool ended_ = false;  // by its caller
  bool over_ = false;   // the call is
};

}  // namespace wirecall::rpc
