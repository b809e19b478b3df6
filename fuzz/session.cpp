// A whole session without a socket: what the peer gets must not depend on how its bytes were cut up on the way. The
// first bytes of an input choose the cuts; the rest arrives once whole and once in these pieces.
#include "session/session.hpp"

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "framing/json_text.hpp"
#include "fuzz/json_maker.hpp"
#include "fuzz/texts.hpp"
#include "runtime/backend.hpp"
#include "wirecall/registry.hpp"
#include "wirecall/value.hpp"

#define FUZZ_FRESH message
#include "fuzz/mutator.hpp"

namespace {

using std::chrono::nanoseconds;

// A loop without I/O, whose time passes when it is told to.
class NoBackend final : public wirecall::runtime::Backend {
 public:
  std::span<wirecall::runtime::Completion> turn(std::span<wirecall::runtime::Operation>, nanoseconds) override {
    return {};
  }
  [[nodiscard]] std::shared_ptr<void> keep_lent() override { return nullptr; }
  [[nodiscard]] std::size_t readable(wirecall::runtime::Handle) const noexcept override { return 0; }
  void wake() noexcept override {}
  nanoseconds now() const noexcept override { return time; }

  nanoseconds time{0};
};

// The peer's end of the stream outlives the session's.
struct Wire {
  wirecall::transport::StreamUser* user = nullptr;
  wirecall::Buffer sending;
  bool sends = false;
  bool paused = false;
  std::string out;
};

class FakeStream final : public wirecall::transport::Stream {
 public:
  explicit FakeStream(Wire& wire) : wire_(&wire) {}
  ~FakeStream() override { wire_->user = nullptr; }
  void start(wirecall::transport::StreamUser& user) override { wire_->user = &user; }
  void send(wirecall::Buffer bytes, bool) override {
    if (wire_->sends) std::abort();  // one at a time
    wire_->sends = true;
    wire_->sending = std::move(bytes);
  }
  void pause() override { wire_->paused = true; }
  void resume() override { wire_->paused = false; }
  [[nodiscard]] std::size_t readable() const noexcept override { return 0; }
  void shut_down() override {}

 private:
  Wire* wire_;
};

class Peer final : wirecall::session::Owner {
 public:
  explicit Peer(const wirecall::Registry& registry) : registry_(registry) {
    auto backend = std::make_unique<NoBackend>();
    backend_ = backend.get();
    loop_ = std::make_unique<wirecall::Loop>(std::move(backend));
    host_.reset(new wirecall::session::Host{*loop_, registry_, limits_, workspace_, *this});
    session_ = std::make_unique<wirecall::session::Session>(*host_, std::make_unique<FakeStream>(wire_),
                                                            std::make_unique<wirecall::framing::JsonText>(settings_));
  }
  void send(std::string_view bytes) {
    for (int turns = 0; wire_.paused && !over_; ++turns) {
      if (turns > 10'000) fuzz::found("a session never reads on", bytes);
      turn();
    }
    if (over_) return;
    fuzz::PaddedText padded{bytes};
    // Lent for writing, which is all right: the block is ours.
    wire_.user->received({const_cast<char*>(padded.view().data()), padded.view().size()});
    turn();
  }
  std::string finish(std::string_view input) {
    for (int turns = 0; wire_.paused && !over_; ++turns) {
      if (turns > 10'000) fuzz::found("a session never reads on", input);
      turn();
    }
    if (!over_) wire_.user->ended();
    for (int turns = 0; !over_; ++turns) {
      if (turns > 10'000) fuzz::found("a session never ends", input);
      turn();
    }
    return std::move(wire_.out);
  }

 private:
  void connection_ended(wirecall::session::Connection&, wirecall::session::End, int) override { over_ = true; }
  void turn() {
    backend_->time += std::chrono::milliseconds{1};
    loop_->turn(nanoseconds{0});
    if (over_) return session_.reset();
    if (!wire_.sends) return;
    wire_.sends = false;
    wire_.out += wire_.sending.view();
    wire_.user->sent(std::move(wire_.sending));
    wire_.sending = {};
  }

  const wirecall::Registry& registry_;
  // Small enough to be met by small inputs.
  wirecall::Limits limits_{.max_message_size = 300, .batch = 3, .depth = 8, .soft_output = 2000};
  wirecall::framing::JsonTextSettings settings_{limits_};
  wirecall::rpc::Workspace workspace_;
  NoBackend* backend_ = nullptr;
  std::unique_ptr<wirecall::Loop> loop_;
  std::unique_ptr<wirecall::session::Host> host_;
  Wire wire_;
  std::unique_ptr<wirecall::session::Session> session_;
  bool over_ = false;
};

wirecall::Registry make_registry() {
  wirecall::Registry registry;
  registry.method("subtract", [](int a, int b) { return std::int64_t{a} - b; }, {"a", "b"});
  registry.method("echo", [](wirecall::Value value) { return value; });
  registry.method("raw", [](wirecall::Raw value) { return value; });
  return registry;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const wirecall::Registry registry = make_registry();
  const std::string_view all = fuzz::text_of(data, size);
  std::uint64_t seed = 0;
  for (std::size_t i = 0; i < 2 && i < all.size(); ++i) seed = seed << 8 | static_cast<unsigned char>(all[i]);
  const std::string_view input = all.substr(std::min<std::size_t>(2, all.size()));

  Peer whole{registry};
  if (!input.empty()) whole.send(input);
  const std::string expected = whole.finish(input);

  Peer pieces{registry};
  fuzz::Random random{seed};
  const std::size_t piece_max = 1 + random.below(random.one_in(2) ? 4 : 100);
  for (std::size_t at = 0; at < input.size();) {
    const std::size_t piece = 1 + random.below(piece_max);
    pieces.send(input.substr(at, piece));
    at += piece;
  }
  const std::string got = pieces.finish(input);
  if (got != expected) {
    std::fprintf(stderr, "whole:     %s\nin pieces: %s\n", expected.c_str(), got.c_str());
    fuzz::found("the answers depend on how the bytes were cut", all);
  }
  return 0;
}
