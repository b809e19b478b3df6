// PlainEvents: what clients of this broker publish to the topics that the options name goes to `wc.<realm>.t.<topic>`
// as well, for clients of the bus that are no brokers. Each node publishes those of its own clients, so each event
// comes once. Owned by PlainClients. One thread. Pure. Implements docs/cluster.md "Plain NATS clients".
#pragma once

#include "cluster/node.hpp"

namespace wirecall::cluster {

class PlainEvents {
 public:
  /// `patterns` are valid. `context` outlives it.
  PlainEvents(NodeContext& context, const std::vector<std::string>& patterns);
  ~PlainEvents();
  PlainEvents(PlainEvents&&) = delete;

  /// What has waited for room goes on, once there is some.
  void resume();
  /// Nothing is told any more.
  void end() noexcept;

 private:
  class Sink final : public rpc::MessageSink {
   public:
    explicit Sink(NodeContext& context) : context_(&context) {}

    Buffer& open_message() override { return text_; }
    void close_message() override;
    void discard_message() noexcept override { text_.clear(); }
    [[nodiscard]] bool is_overfull() noexcept override;
    [[nodiscard]] bool writable() noexcept override { return !is_overfull(); }
    [[nodiscard]] rpc::PeerCapabilities capabilities() const noexcept override { return rpc::PeerCapabilities::all(); }
    [[nodiscard]] std::string peer_source() const override { return "nats"; }
    [[nodiscard]] std::string_view protocol() const noexcept override { return "nats"; }

    bool overfull = false;  ///< somebody has been told so

   private:
    NodeContext* context_;
    Buffer text_;
    bool told_ = false;  // of one that was too large
  };

  NodeContext* context_;
  Sink sink_;
  rpc::Dispatcher dispatcher_;
  broker::Peer* peer_ = nullptr;
};

}  // namespace wirecall::cluster
