// LongMessage: a message that takes milliseconds to read; LongReader has such messages read on another thread, while
// the loop serves others. Whoever has received one hands it over, looks at nothing that follows, and is told on its
// loop's thread when it has been read. A message is owned by its connection and by who reads it; a connection that goes
// before says so (`forget`).
#pragma once

#include <deque>
#include <functional>
#include <unordered_map>

#include "framing/message_deflate.hpp"
#include "message/explain.hpp"
#include "message/message_codec.hpp"
#include "message/transcoder.hpp"
#include "rpc/accounts.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/codec.hpp"
#include "wirecall/detail/blocking_pool.hpp"
#include "wirecall/limits.hpp"
#include "wirecall/message.hpp"

namespace wirecall::net {

/// As which a message is refused that cannot be transcoded, and is not too large.
[[nodiscard]] constexpr ScanStatus scan_status_of(message::Transcoder::Status status) noexcept {
  return status == message::Transcoder::Status::too_deep ? ScanStatus::too_deep : ScanStatus::malformed;
}

class LongMessage {
 public:
  using Status = message::Transcoder::Status;

  /// Called when it has been read. Thread: the loop's.
  using Then = std::move_only_function<void()>;

  /// From whom it is, as far as its reading goes.
  struct Sender {
    std::shared_ptr<rpc::Account> account;
    std::optional<std::chrono::nanoseconds> received_at;  ///< when its last byte was
    std::shared_ptr<void> hold;                           ///< holds what follows until after `then`
    Then then;
  };

  LongMessage(Buffer text, Encoding encoding, const Limits& limits, Sender sender)
      : received_at(sender.received_at),
        encoding(encoding),
        text(std::move(text)),
        limits_(limits),
        sender_(std::move(sender)) {}
  LongMessage(LongMessage&&) = delete;

  /// Nobody is there any more to be told.
  void forget() noexcept {
    sender_.then = nullptr;
    sender_.hold.reset();
  }
  /// It is compressed.
  void unpack_by(std::unique_ptr<framing::MessageDeflate> deflate) noexcept { deflate_ = std::move(deflate); }
  /// What it holds of memory: as it came, until it has been read. Thread: the loop's.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  const std::optional<std::chrono::nanoseconds> received_at;
  const Encoding encoding;  ///< as which it came

  // Once it has been read.
  Buffer text;                 ///< or what it is in JSON; without the byte order mark that `mark` counts
  std::size_t mark = 0;        ///< bytes of a byte order mark in front of JSON
  bool transcoded = false;     ///< it was no JSON, and is now
  bool out_of_memory = false;  ///< nothing else means anything
  Status status = Status::done;
  message::EnvelopeMembers members;                       ///< of another encoding
  std::vector<message::Unrepresentable> unrepresentable;  ///< of what was transcoded
  std::vector<std::string> cancels;                       ///< likewise
  Scan scan;                                              ///< of JSON
  Received message;                                       ///< of JSON that is complete: views of `text`
  /// Of one that was compressed, of which nothing else has been read; `text` is what it stands for.
  std::optional<framing::MessageDeflate::Outcome> unpacked;

 private:
  friend class LongReader;
  using Step = void (LongMessage::*)();

  void perform() noexcept;
  void read_or_check();
  void read_json();
  void make_json();
  void unpack();
  void tell() noexcept;

  const Limits limits_;
  std::size_t bytes_ = text.capacity();
  Sender sender_;
  Step step_ = nullptr;
  std::unique_ptr<framing::MessageDeflate> deflate_;  // of one that is compressed; else null
};

/// Has the messages of a loop read, one of each account at a time: who sends many delays himself. Thread: the loop's.
class LongReader {
 public:
  explicit LongReader(detail::BlockingPool& pool) noexcept : pool_(&pool) {}
  LongReader(LongReader&&) = delete;

  /// Reads JSON; checks what is in another encoding.
  void read(const std::shared_ptr<LongMessage>& message) { begin(message, &LongMessage::read_or_check); }
  /// Makes JSON of what has been checked, and reads that.
  void transcode(const std::shared_ptr<LongMessage>& message) { begin(message, &LongMessage::make_json); }
  /// Unpacks what is compressed, and reads nothing.
  void unpack(const std::shared_ptr<LongMessage>& message) { begin(message, &LongMessage::unpack); }

 private:
  using Line = std::deque<std::shared_ptr<LongMessage>>;

  void begin(const std::shared_ptr<LongMessage>& message, LongMessage::Step step);
  [[nodiscard]] bool run(const std::shared_ptr<LongMessage>& message);
  void finish(LongMessage& message) noexcept;

  detail::BlockingPool* pool_;
  std::unordered_map<const rpc::Account*, Line> lines_;  // of accounts that have one at work: who waits for that
};

}  // namespace wirecall::net
