// A socket of datagrams that are no bytes on any network: the test sends by name and sees what has been sent to each
// name. What comes is told in the next turn of the loop, as a system tells it.
#pragma once

#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/inbox.hpp"
#include "transport/datagram_socket.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/loop.hpp"

namespace wirecall::transport {

/// What the test sees of the socket, and the socket of the test; outlives either.
struct MemoryDatagrams {
  DatagramUser* user = nullptr;
  std::map<std::string, std::vector<std::string>> sent;  // by name
  bool full = false;                                     // the system has no room: what is sent is dropped
  bool closed = false;
};

class MemoryDatagramSocket final : public DatagramSocket {
 public:
  MemoryDatagramSocket(std::shared_ptr<MemoryDatagrams> net, std::size_t bytes_max)
      : net_(std::move(net)), bytes_max_(bytes_max) {}
  MemoryDatagramSocket(MemoryDatagramSocket&&) = delete;
  ~MemoryDatagramSocket() override {
    net_->user = nullptr;
    net_->closed = true;
  }

  void start(DatagramUser& user) override { net_->user = &user; }
  void send(std::string_view datagram, const DatagramAddress& to) noexcept override {
    if (!net_->full) net_->sent[name_of(to)].emplace_back(datagram);
  }
  [[nodiscard]] std::size_t bytes_max() const noexcept override { return bytes_max_; }
  [[nodiscard]] std::string peer_source(const DatagramAddress& source) const override { return name_of(source); }

  [[nodiscard]] static DatagramAddress address_of(std::string_view name) {
    DatagramAddress address{.size = static_cast<std::uint8_t>(name.size())};
    std::memcpy(address.bytes.data(), name.data(), name.size());
    return address;
  }
  [[nodiscard]] static std::string name_of(const DatagramAddress& address) {
    return {reinterpret_cast<const char*>(address.bytes.data()), address.size};
  }

 private:
  std::shared_ptr<MemoryDatagrams> net_;
  std::size_t bytes_max_;
};

/// A datagram from `name`, whose bytes are no longer there once it has been read.
inline void send_datagram(Loop& loop, const std::shared_ptr<MemoryDatagrams>& net, std::string name,
                          std::string_view bytes) {
  loop.inbox()->post_owed([net, name = std::move(name), bytes = std::string{bytes}] {
    Buffer lent{bytes};
    if (net->user != nullptr) net->user->received(lent.padded(), MemoryDatagramSocket::address_of(name));
  });
}

}  // namespace wirecall::transport
