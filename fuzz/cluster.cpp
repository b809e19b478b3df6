// What comes by the bus of a cluster, of any bytes: heartbeats, frames, records and what nodes say of their methods are
// read or refused, alike however a stream is cut; and a broker with a client that provides serves whatever a node sends
// in a session, also where it or that broker is replaced by another process. The first byte chooses which.
#include "cluster/cluster.hpp"

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "fuzz/texts.hpp"
#include "tests/base/virtual_scheduler.hpp"

namespace {

using namespace wirecall;
using namespace wirecall::cluster;

// A bus on which the fuzzer is everybody else.
class FedBus final : public Bus {
 public:
  [[nodiscard]] State state() const noexcept override { return State::connected; }
  void on_state(std::function<void()>) override {}
  void subscribe(std::string subject, Handler handler) override {
    subscriptions_.emplace_back(std::move(subject), std::move(handler));
  }
  void subscribe_to_absence(std::string subject, Handler handler) override {
    subscribe(std::move(subject), std::move(handler));
  }
  void subscribe_in_group(std::string subject, std::string, Handler handler) override {
    subscribe(std::move(subject), std::move(handler));
  }
  void unsubscribe(std::string_view) noexcept override {}
  [[nodiscard]] bool publish(std::string_view subject, std::string_view, std::string_view payload) noexcept override {
    if (subject == kInbox) ++replies;
    if (const auto frame = read_frame(payload)) session = frame->head.from_session;
    return true;
  }
  [[nodiscard]] std::size_t payload_bytes_max() const noexcept override { return 1000; }
  [[nodiscard]] std::size_t waiting_bytes() const noexcept override { return 0; }
  [[nodiscard]] std::string url() const override { return {}; }
  [[nodiscard]] std::string failure() const override { return {}; }

  void bring(std::string_view subject, std::string_view payload, std::string_view reply = {}) {
    const std::vector<char> block(payload.begin(), payload.end());
    for (const auto& [name, handler] : subscriptions_) {
      const bool fits = name.ends_with('>') ? subject.starts_with(std::string_view{name}.substr(0, name.size() - 1))
                                            : name == subject;
      if (fits) handler({.subject = subject, .reply = reply, .payload = {block.data(), block.size()}});
    }
  }

  static constexpr std::string_view kInbox = "_INBOX.1";
  std::uint64_t session = 0;  // of the broker's link
  std::size_t replies = 0;    // at kInbox

 private:
  std::vector<std::pair<std::string, Handler>> subscriptions_;
};

class DroppingSink final : public rpc::MessageSink {
 public:
  Buffer& open_message() override { return text_; }
  void close_message() override { text_.clear(); }
  void discard_message() noexcept override { text_.clear(); }
  [[nodiscard]] rpc::PeerCapabilities capabilities() const noexcept override { return rpc::PeerCapabilities::all(); }

 private:
  Buffer text_;
};

// The broker that is attacked.
struct AttackedNode {
  explicit AttackedNode(ClusterSettings settings) {
    registry.method("own.add", [](std::int64_t x, std::int64_t y) { return x + y; });
    loop_context.services.broker = &router;
    auto own_bus = std::make_unique<FedBus>();
    bus = own_bus.get();
    auto own_cluster =
        std::make_unique<Cluster>(rpc::BrokerHost{.registry = registry, .limits = limits, .loop_context = loop_context},
                                  router, std::move(own_bus), std::move(settings));
    cluster = own_cluster.get();
    router.join(std::move(own_cluster));
  }
  AttackedNode(AttackedNode&&) = delete;

  test::VirtualScheduler scheduler;
  Registry registry;
  const Limits limits;
  rpc::LoopContext loop_context{json_codec(), &scheduler};
  broker::Router router{registry, limits, loop_context};
  FedBus* bus = nullptr;
  Cluster* cluster = nullptr;
};

void serve(std::string_view bytes) {
  AttackedNode node{{.realm = "r", .node = "a", .epoch = 7}};
  FedBus& bus = *node.bus;
  DroppingSink sink;
  rpc::Dispatcher provider{node.registry, sink, node.limits, node.loop_context};
  Buffer text{R"({"jsonrpc":"2.0","method":"rpc.register","params":{"method":"m"},"id":1})"};
  Received message;
  fuzz::require(read_message(text.padded(), node.limits, true, message).status == ScanStatus::complete, "a request",
                {});
  provider.handle(message);
  bus.bring("wc.r.hb", R"({"node":"b","epoch":"9","version":1})");
  const auto frame = [&](FrameKind kind, std::uint32_t sequence, std::string_view payload) {
    Buffer out;
    append_frame_head(out,
                      {.kind = kind, .from_session = 5, .to_session = bus.session, .sequence = sequence, .node = "b"});
    out.append(payload);
    bus.bring("wc.r.n.a.call", out.view());
  };
  frame(FrameKind::open, 0, "?");
  std::uint32_t sequence = 0;
  while (!bytes.empty()) {
    const std::size_t size = std::min<std::size_t>(static_cast<unsigned char>(bytes[0]) + 1U, bytes.size() - 1);
    frame(FrameKind::data, sequence++, bytes.substr(1, size));
    node.scheduler.advance(std::chrono::milliseconds{1});
    bytes.remove_prefix(1 + size);
  }
  node.scheduler.advance(std::chrono::seconds{5});
}

// Of each piece the first byte says what it is, the second one of which of four sessions, and whether it comes to the
// process or to the node. In the end all sessions are over.
void serve_replaced(std::string_view bytes) {
  AttackedNode node{{.realm = "r", .node = "a", .epoch = 7}};
  FedBus& bus = *node.bus;
  DroppingSink sink;
  rpc::Dispatcher caller{node.registry, sink, node.limits, node.loop_context};
  const auto call = [&] {
    Buffer text{R"({"jsonrpc":"2.0","method":"m","params":[],"id":1})"};
    Received message;
    if (read_message(text.padded(), node.limits, true, message).status == ScanStatus::complete) caller.handle(message);
  };
  std::uint32_t sequences[4] = {};
  std::uint64_t sessions[4] = {};  // of the broker's links, as they were when these have begun
  while (bytes.size() >= 3) {
    const auto what = static_cast<unsigned char>(bytes[0]);
    const std::size_t which = static_cast<unsigned char>(bytes[1]) % 4;
    const bool to_process = (bytes[1] & 4) != 0;
    const std::size_t size = std::min<std::size_t>(static_cast<unsigned char>(bytes[2]), bytes.size() - 3);
    std::string_view payload = bytes.substr(3, size);
    const auto frame = [&](FrameKind kind, std::uint32_t sequence) {
      Buffer out;
      append_frame_head(
          out,
          {.kind = kind, .from_session = 5 + which, .to_session = sessions[which], .sequence = sequence, .node = "b"});
      out.append(payload);
      bus.bring(to_process ? "wc.r.n.a.call.7" : "wc.r.n.a.call", out.view());
    };
    switch (what % 10) {
      case 0: bus.bring("wc.r.hb", R"({"node":"b","epoch":")" + std::to_string(5 + which) + R"(","version":1})"); break;
      case 1:
        sessions[which] = bus.session;
        frame(FrameKind::open, 0);
        break;
      case 2: frame(FrameKind::leave, 0); break;
      case 3:
        payload = "replaced";
        frame(FrameKind::leave, 0);
        break;
      case 4: frame(FrameKind::ping, 0); break;
      case 5: frame(FrameKind::pong, 0); break;
      case 6: node.router.replaced(); break;
      case 7: call(); break;
      case 8: node.scheduler.advance(std::chrono::milliseconds{100}); break;
      default: frame(FrameKind::data, sequences[which]++); break;
    }
    node.scheduler.advance(std::chrono::milliseconds{1});
    bytes.remove_prefix(3 + size);
  }
  node.scheduler.advance(std::chrono::seconds{10});
  fuzz::require(node.cluster->departing() == 0, "a session with a process is left that says nothing", bytes);
}

// What a plain client sends: words of a subject up to a line break, and a text. It has one answer at most.
void serve_plain(std::string_view bytes) {
  AttackedNode node{{.realm = "r", .node = "a", .epoch = 7, .plain = {.principal = "anonymous", .topics = {"own.>"}}}};
  FedBus& bus = *node.bus;
  const std::size_t end = std::min(bytes.find('\n'), bytes.size());
  bus.bring("wc.r.m." + std::string{bytes.substr(0, end)}, bytes.substr(std::min(end + 1, bytes.size())),
            FedBus::kInbox);
  node.scheduler.advance(std::chrono::seconds{5});
  fuzz::require(bus.replies <= 1, "a message has two replies", bytes);
}

void read_records(std::string_view bytes) {
  const std::vector<char> block(bytes.begin(), bytes.end());
  std::string_view rest{block.data(), block.size()};
  while (true) {
    const RecordRead read = read_record(rest, 1000);
    if (read.status != RecordRead::Status::complete) break;
    fuzz::require(read.bytes <= rest.size() && read.record.body.size() < read.bytes, "a record beyond its bytes",
                  bytes);
    // Less of it is incomplete, and never another record.
    for (std::size_t less = 0; less != read.bytes; ++less) {
      const RecordRead part = read_record(rest.substr(0, less), 1000);
      fuzz::require(part.status == RecordRead::Status::incomplete, "a part of a record is one", bytes);
    }
    Buffer again;
    RecordWriter writer{again, read.record.head};
    again.append(read.record.body);
    fuzz::require(writer.close(), "a record is written", bytes);
    const RecordRead second = read_record(again.view(), 1000);
    fuzz::require(second.status == RecordRead::Status::complete && second.record.body == read.record.body &&
                      second.record.head.principal == read.record.head.principal,
                  "a record is read otherwise than it was written", bytes);
    rest.remove_prefix(read.bytes);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes = fuzz::text_of(data + 1, size - 1);
  const std::vector<char> block(bytes.begin(), bytes.end());
  const std::string_view exact{block.data(), block.size()};
  switch (data[0] % 7) {
    case 0:
      if (const auto heartbeat = read_heartbeat(exact)) {
        const auto again = read_heartbeat(write_heartbeat(*heartbeat));
        fuzz::require(again && again->node == heartbeat->node && again->epoch == heartbeat->epoch,
                      "a heartbeat is read otherwise than it was written", bytes);
      }
      break;
    case 1:
      if (const auto frame = read_frame(exact)) {
        Buffer again;
        append_frame_head(again, frame->head);
        again.append(frame->payload);
        fuzz::require(again.view() == exact, "a frame is written otherwise than it was read", bytes);
      }
      break;
    case 2: read_records(exact); break;
    case 3: {
      Buffer padded{bytes};
      bool all = false;
      static_cast<void>(
          read_method_news(padded.padded(), json_codec(), {.set = [](auto) {}, .gone = [](auto) {}}, all));
      break;
    }
    case 4: serve(bytes); break;
    case 5: serve_plain(bytes); break;
    case 6: serve_replaced(bytes); break;
    default: break;
  }
  return 0;
}
