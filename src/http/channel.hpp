// HttpChannel: a Channel as the parts of an HttpConnection use it (its reader, its transactions, its event stream),
// with what all requests of the connection share. HttpSink: what their MessageSinks have in common. Lives on its loop's
// thread; goes behind its parts.
#pragma once

#include "connection/channel.hpp"
#include "rpc/dispatcher.hpp"

namespace wirecall::net {

class HttpChannel : public Channel {
 public:
  using Channel::backpressured;
  using Channel::block;
  using Channel::certificate_names;
  using Channel::count_into;
  using Channel::give_back;
  using Channel::has_long_message;
  using Channel::held_by;
  using Channel::hold_input;
  using Channel::input_ended;
  using Channel::input_received_at;
  using Channel::interrupt;
  using Channel::off_loop;
  using Channel::output;
  using Channel::output_grew;
  using Channel::output_grew_elsewhere;
  using Channel::output_has_budget_for;
  using Channel::output_is_overfull;
  using Channel::output_writable;
  using Channel::over;
  using Channel::own_share;
  using Channel::peer_credentials;
  using Channel::peer_source;
  using Channel::read_off_loop;
  using Channel::request_turn_end;
  using Channel::stop_reading;
  using Channel::take_long_message;
  using Channel::tls;
  using Channel::tls_version;
  using Channel::transcode_off_loop;
  using Channel::weigh;
  using Channel::within_memory;

  [[nodiscard]] bool next_slice() noexcept { return Channel::next_slice(); }
  [[nodiscard]] Host& host() const noexcept { return *host_; }
  /// Sends a response that has been held back; `held` is empty then.
  void send_held(Buffer& held) {
    const std::size_t waiting = output().size();
    if (waiting == 0) {
      std::swap(out_, held);
    } else {
      out_.append(held.view());
    }
    give_back(held);
    output_grew(waiting);
  }
  /// Of all requests; null as long as no call has waited, and no broker has been asked.
  [[nodiscard]] const std::shared_ptr<rpc::PeerLoad>& load() const noexcept { return load_; }
  [[nodiscard]] const std::shared_ptr<rpc::PeerLoad>& make_load() {
    if (!load_) load_ = std::make_shared<rpc::PeerLoad>();
    return load_;
  }
  /// A request has not come in time.
  virtual void request_is_late() = 0;

  std::string host_name;             // of the last POST, where it is one of ours; else empty
  std::uint8_t response_digits = 2;  // of the last response's length
  bool last_response = false;        // there is none behind that of the last request: it closes the connection

 protected:
  using Channel::Channel;

 private:
  std::shared_ptr<rpc::PeerLoad> load_;
};

class HttpSink : public rpc::MessageSink {
 public:
  void lose_answer() noexcept override { channel_->fail_out_of_memory(); }
  [[nodiscard]] std::optional<PeerCredentials> peer_credentials() const override {
    return channel_->peer_credentials();
  }
  [[nodiscard]] rpc::Share* share() noexcept override { return &channel_->own_share(); }
  [[nodiscard]] std::string peer_source() const override { return channel_->peer_source(); }
  [[nodiscard]] std::string_view protocol() const noexcept override { return "http"; }
  [[nodiscard]] std::string_view tls_version() const noexcept override { return channel_->tls_version(); }
  [[nodiscard]] std::optional<std::vector<std::string>> certificate_names() const override {
    return channel_->certificate_names();
  }
  [[nodiscard]] std::shared_ptr<rpc::PeerLoad> load() override { return channel_->make_load(); }

 protected:
  explicit HttpSink(HttpChannel& channel) noexcept : channel_(&channel) {}
  ~HttpSink() = default;

  HttpChannel* channel_;
};

}  // namespace wirecall::net
