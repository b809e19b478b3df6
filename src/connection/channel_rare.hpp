// What few channels have: the time in which the end of a peer is waited for, a share of the budget of a principal, a
// message that is read off the loop, and what holds their input.
// Private to the sources of Channel.
#pragma once

#include "connection/channel.hpp"
#include "rpc/accounts.hpp"

namespace wirecall::net {

// After a refusal the peer may still be sending. Closing at once would reset the connection, and with it the answer
// that the peer has not read yet: so what it sends is thrown away for as long as this.
class ChannelLife::Linger final : private Timer {
 public:
  explicit Linger(ChannelLife& channel) : channel_(&channel) { channel_->host_->loop.start(*this, kTime); }
  Linger(Linger&&) = delete;
  ~Linger() { channel_->host_->loop.stop(*this); }

 private:
  static constexpr std::chrono::milliseconds kTime{1000};

  void expired() override { channel_->end_linger(); }

  ChannelLife* channel_;
};

// What the connection holds of its account's budget.
class ChannelOutput::Weight final : public rpc::MemoryConsumer {
 public:
  explicit Weight(ChannelOutput& channel) noexcept : channel_(&channel) {}

  void set(std::shared_ptr<rpc::Account> account, std::size_t bytes) {
    const std::shared_ptr<rpc::Account> before = std::exchange(account_, std::move(account));
    account_->buffers.hold(*this, bytes, channel_->host_->limits.principal_bytes);
  }
  [[nodiscard]] std::size_t of(const rpc::Account& account) const noexcept { return account.buffers.of(*this); }

 private:
  void evict() override;

  ChannelOutput* channel_;
  std::shared_ptr<rpc::Account> account_;
};

// Holds the input: none is read while it lives.
class ChannelInput::InputHold final {
 public:
  explicit InputHold(ChannelInput& channel) noexcept : channel_(&channel) {}
  InputHold(InputHold&&) = delete;
  ~InputHold() {
    if (channel_ != nullptr) channel_->release(Hold::message);
  }
  /// The channel goes first.
  void outlive() noexcept { channel_ = nullptr; }

 private:
  ChannelInput* channel_;
};

struct ChannelLife::Rare {
  std::unique_ptr<Linger> linger;
  std::unique_ptr<ChannelOutput::Weight> weight;  // null for a channel that holds little
  std::weak_ptr<ChannelInput::InputHold> hold;    // null where nobody has one
  std::shared_ptr<LongMessage> long_message;      // that is read off the loop, or has been
};

}  // namespace wirecall::net
