// A broker without sockets: peers that send texts to dispatchers of one router and keep the output, on a clock that a
// test moves.
#pragma once

#include <chrono>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "broker/router.hpp"
#include "message/transcoder.hpp"
#include "rpc/dispatcher.hpp"
#include "tests/base/virtual_scheduler.hpp"
#include "tests/message/read.hpp"
#include "tests/rpc/peer.hpp"
#include "wirecall/registry.hpp"

namespace wirecall::test {

class World {
 public:
  explicit World(const Limits& given = {}, const broker::Settings& of_broker = {},
                 std::unique_ptr<durable::Store> durable_store = nullptr)
      : limits(given), settings(of_broker), store(std::move(durable_store)) {
    loop_context.services.broker = &router;
  }
  World(World&&) = delete;

  void advance(std::chrono::nanoseconds by) { scheduler.advance(by); }

  Registry registry;
  Limits limits;
  broker::Settings settings;
  std::unique_ptr<durable::Store> store;  // the router's, once there is one
  VirtualScheduler scheduler;
  rpc::LoopContext loop_context{json_codec(), &scheduler};
  broker::Router router{registry, limits, loop_context, settings, std::move(store)};
};

/// One connection of the world.
class Client {
 public:
  explicit Client(World& world) : world_(&world) { connect(); }
  Client(Client&&) = delete;

  /// The text is freed when this returns.
  void send(std::string_view text) {
    const PaddedText frame{text};
    Received message;
    const Scan scan = read_message(frame.view(), world_->limits, true, message);
    ASSERT_EQ(scan.status, ScanStatus::complete) << text;
    if (message.kind == MessageKind::response) {
      if (!dispatcher->response(message)) ++dropped;
    } else {
      dispatcher->handle(message);
    }
    EXPECT_FALSE(sink->open());
  }
  /// A message in MessagePack, given to the broker as a session does it.
  void send_msgpack(std::string_view message) {
    using message::Transcoder;
    const PaddedText frame{message};
    message::NativeTranscoder& transcoder = world_->loop_context.codecs.native(Encoding::msgpack);
    Buffer envelope;
    Received read;
    ASSERT_EQ(transcoder.read(frame.view(), world_->limits, envelope, read), Transcoder::Status::done);
    if (!dispatcher->takes_encoded(read)) {
      Buffer json;
      ASSERT_EQ(transcoder.to_json(frame.view(), world_->limits, json), Transcoder::Status::done);
      return send(json.view());
    }
    if (read.kind != MessageKind::response)
      return dispatcher->handle_encoded(read, {}, {frame.view(), Encoding::msgpack});
    message::NativeTranscoder::restore(Encoding::msgpack, frame.view(), read);
    read.text = frame.view();
    if (!dispatcher->response(read)) ++dropped;
  }
  /// The output since the last call, one message a line.
  [[nodiscard]] std::string received() { return sink->take(); }
  [[nodiscard]] std::string ask(std::string_view text) {
    send(text);
    return received();
  }
  void provide(std::string_view method, std::string_view terms = {}) {
    EXPECT_EQ(ask(request("rpc.register", R"({"method":")" + std::string{method} + '"' + std::string{terms} + "}")),
              result_reply("1"));
  }
  /// The connection is lost.
  void leave() {
    dispatcher.reset();
    sink.reset();
  }
  void connect() {
    sink = std::make_unique<RecordingSink>();
    dispatcher = std::make_unique<rpc::Dispatcher>(world_->registry, *sink, world_->limits, world_->loop_context);
  }

  std::unique_ptr<RecordingSink> sink;
  std::unique_ptr<rpc::Dispatcher> dispatcher;
  std::size_t dropped = 0;  ///< responses without a call

 private:
  World* world_;
};

/// The id of a message's text.
inline std::string id_of(std::string_view text) {
  const PaddedText frame{text};
  Received message;
  if (read_message(frame.view(), Limits{}, true, message).status != ScanStatus::complete) return "unreadable";
  return std::string{message.id()};
}

inline std::string provider_lost(std::string_view delivered, std::string_view id = "1") {
  return error_reply(
      -32001, "Provider lost",
      R"({"reason":"the provider has gone","origin":"local","delivered":")" + std::string{delivered} + "\"}", id);
}
inline std::string cancel_notification(std::string_view id) {
  return R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":)" + std::string{id} + "}}";
}

}  // namespace wirecall::test
