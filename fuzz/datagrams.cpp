// A server by datagrams that is sent anything: nothing is worth a forged source. Each datagram is answered by one at
// most, of at most three times its bytes, which is a whole message; what a server answers is not answered by another;
// and the next caller is served as if nothing had been. The first byte of an input chooses between a server that
// everybody may use and one that asks who calls.
#include <chrono>
#include <string>
#include <vector>

#include "connection/datagram_service.hpp"
#include "fuzz/peer.hpp"
#include "fuzz/texts.hpp"
#include "rpc/access.hpp"
#include "tests/transport/memory_datagrams.hpp"
#include "wirecall/registry.hpp"
#include "wirecall/value.hpp"

#define FUZZ_FRESH message
#include "fuzz/mutator.hpp"

namespace {

using wirecall::net::DatagramService;
using wirecall::transport::MemoryDatagrams;
using wirecall::transport::MemoryDatagramSocket;

// Small enough to be met by small inputs.
const wirecall::Limits kLimits{.max_message_size = 300, .batch = 3, .depth = 8, .datagram_reply_bytes = 300};

wirecall::Registry make_registry() {
  wirecall::Registry registry;
  registry.method("subtract", [](int a, int b) { return std::int64_t{a} - b; }, {"a", "b"}).safe();
  registry.method("echo", [](wirecall::Value value) { return value; }).safe();
  registry.method("big", [](std::uint16_t bytes) { return std::string(bytes, 'x'); }, {"bytes"});
  return registry;
}

class World : wirecall::net::ConnectionOwner {
 public:
  World(const wirecall::Registry& registry, bool asks)
      : host_{.loop = loop_, .registry = registry, .limits = kLimits, .loop_context = context_, .owner = *this} {
    if (asks) {
      std::vector<wirecall::Principal> known(1);
      known[0].name = "ada";
      known[0].tokens = {"secret"};
      known[0].call = {">"};
      context_.services.authority = std::make_shared<const wirecall::rpc::Authority>(std::move(known));
    }
    service_.emplace(host_, std::make_unique<MemoryDatagramSocket>(net_, 65'507));
  }
  // What a datagram is answered with; nothing, or the one reply.
  std::vector<std::string> ask(std::string_view datagram) {
    wirecall::transport::send_datagram(loop_, net_, "a", datagram);
    for (int i = 0; i < 4; ++i) loop_.turn(std::chrono::milliseconds{0});
    return std::exchange(net_->sent["a"], {});
  }
  ~World() {
    service_.reset();
    loop_.turn(std::chrono::milliseconds{0});
  }
  World(World&&) = delete;

 private:
  void connection_ended(wirecall::net::Connection&, wirecall::net::CloseReason, int) override {}

  wirecall::Loop loop_{std::make_unique<fuzz::NoBackend>()};
  wirecall::rpc::LoopContext context_{wirecall::json_codec(), &loop_, nullptr};
  std::shared_ptr<MemoryDatagrams> net_ = std::make_shared<MemoryDatagrams>();
  wirecall::net::Host host_;
  std::optional<DatagramService> service_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const wirecall::Registry registry = make_registry();
  if (size == 0) return 0;
  const bool asks = (data[0] & 1) != 0;
  const std::string_view datagram = fuzz::text_of(data + 1, size - 1);
  World world{registry, asks};
  const std::vector<std::string> replies = world.ask(datagram);
  fuzz::require(replies.size() <= 1, "more than one reply", datagram);
  for (const std::string& reply : replies) {
    fuzz::require(reply.size() <= 3 * datagram.size(), "a reply of more than three times its request", datagram);
    fuzz::require(reply.size() <= kLimits.datagram_reply_bytes, "a reply over the limit", datagram);
    fuzz::require(!asks || reply.find("xx") == std::string::npos || datagram.find("xx") != std::string_view::npos,
                  "a method that is not safe has been called", datagram);
    fuzz::require(world.ask(reply).empty(), "a reply is answered", datagram);
  }
  const std::string call = R"({"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":1})";
  fuzz::require(world.ask(call) == std::vector<std::string>{R"({"jsonrpc":"2.0","result":19,"id":1})"},
                "the next caller is not served", datagram);
  return 0;
}
