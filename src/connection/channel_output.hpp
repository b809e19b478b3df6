// ChannelOutput: the output of one connection, gathered for one send a turn. A layer of Channel: it knows the marks at
// which a peer that does not read is no longer read and at last cut, and the budget of its principal
// (Limits::principal_bytes). Lives on its loop's thread.
//
//   little_output_ KiB <= soft_output: less is never too much
//   soft_output < output: nothing more is read, unless the peer is a provider
//   hard_output < output: the connection is cut
#pragma once

#include <algorithm>

#include "connection/channel_life.hpp"
#include "rpc/memory_budget.hpp"
#include "wirecall/bytes.hpp"

namespace wirecall::net {

class ChannelOutput : public ChannelLife {
 public:
  class Weight;

  ~ChannelOutput() override { give_back(out_); }

  [[nodiscard]] std::size_t output_bytes() const noexcept final { return sending_bytes_ + out_.size(); }
  /// Those of them that have not been handed to the stream.
  [[nodiscard]] std::size_t gathered_bytes() const noexcept { return out_.size(); }
  /// Has `output_drained` called once most of the output has been sent.
  void await_writable() noexcept { awaits_writable_ = true; }

 protected:
  ChannelOutput(Host& host, std::unique_ptr<transport::ByteStream> stream);

  /// Where output is appended.
  Buffer& output() {
    if (out_.capacity() == 0) [[unlikely]]
      take_output();
    return out_;
  }
  /// Output has been appended behind `waiting` bytes of it.
  void output_grew(std::size_t waiting) {
    if ((sending_bytes_ + out_.size()) / kWeighedBytes >= weighed_from_) [[unlikely]]
      output_is_large(waiting);
    mark();
  }
  /// The same of output that waits elsewhere.
  void output_grew_elsewhere(std::size_t waiting) {
    if ((sending_bytes_ + waiting) / kWeighedBytes >= weighed_from_) output_is_large(waiting);
    mark();
  }
  /// Whether output that no request waits for may be appended; after false, `output_drained` is called once it may.
  [[nodiscard]] bool output_writable() noexcept;
  /// Whether more than soft_output waits, or too much for its principal's budget (`output_has_budget_for`); after true,
  /// `output_drained` is called once the output is writable.
  [[nodiscard]] bool output_is_overfull() noexcept {
    return output_bytes() / 1024 >= little_output_ && is_overfull_beyond_little();
  }
  /// As MessageSink::has_budget_for.
  [[nodiscard]] bool output_has_budget_for(std::size_t bytes) noexcept {
    return output_bytes() + bytes <= kWeighedBytes || is_within_budget(bytes);
  }
  /// So much waits that nothing more is read.
  [[nodiscard]] bool output_waits() const noexcept {
    return output_bytes() > host_->limits.soft_output && !is_provider();
  }
  [[nodiscard]] bool awaits_writable() const noexcept { return awaits_writable_; }
  [[nodiscard]] bool is_sending() const noexcept { return sending_bytes_ != 0; }
  /// Hands what has been gathered to the stream; `prompt` as ByteStream::send has it.
  void send_output(bool prompt);
  /// The send in flight has ended.
  void output_sent(Buffer&& buffer) noexcept;
  /// Calls output_drained where somebody waits for it. True when so little waits that reading may go on.
  [[nodiscard]] bool continue_output();

  /// What it holds has changed, and is not little: it is on the account (rpc::Account::buffers), for which this or
  /// another connection may have to give way.
  void weigh() noexcept;
  [[nodiscard]] bool is_weighed() const noexcept { return rare_ && holds_much(); }
  /// The connection has had to give way.
  [[nodiscard]] bool is_evicted() const noexcept { return cut_reason() == Cut::evicted; }
  /// What a buffer counts for: all that it has, which may be twice what is in it. One that is larger has been so when
  /// it was another connection's.
  [[nodiscard]] static std::size_t held_by(const Buffer& buffer) noexcept {
    return std::min(buffer.capacity(), 2 * buffer.size());
  }
  /// Of the input that waits, as `held_by` has it.
  [[nodiscard]] virtual std::size_t backlog_bytes() const noexcept = 0;

  void assert_output() const noexcept;

  static constexpr std::size_t kWeighedBytes = rpc::kBytesUnweighed;

 private:
  // With so much output, a message that is sent without asking for budget stays below kWeighedBytes.
  static constexpr std::size_t kLittleOutput = kWeighedBytes - 2 * rpc::kBytesUnasked;

  [[gnu::noinline]] void take_output() noexcept;
  [[gnu::noinline]] void output_is_large(std::size_t waiting) noexcept;
  [[gnu::noinline, nodiscard]] bool is_overfull_beyond_little() noexcept;
  [[gnu::noinline, nodiscard]] bool is_within_budget(std::size_t more) noexcept;
  [[nodiscard]] bool holds_much() const noexcept;

  std::uint16_t weighed_from_;        // so many times kWeighedBytes of output
  std::uint8_t little_output_;        // less than so many KiB is never too much
  bool awaits_writable_ : 1 = false;  // output_drained is going to be called
  bool large_output_ : 1 = false;     // what was sent last was
  std::size_t sending_bytes_ = 0;     // of the send in flight

 protected:
  Buffer out_;
};

}  // namespace wirecall::net
