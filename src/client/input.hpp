// ClientInput: the stream that one call sends towards its handler: what the server has given credit for, taken from its
// source, encoded and written to the call's connection. The source is asked on the thread that drives, without the
// client's mutex, and destroyed by whoever is done with the call, which waits for an item that is being made.
#pragma once

#include <mutex>

#include "client/core.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/codec.hpp"
#include "wirecall/detail/input_source.hpp"

namespace wirecall::net {

class ClientInput final : public std::enable_shared_from_this<ClientInput>, private detail::InputDriver {
 public:
  ClientInput(ClientCore& core, std::unique_ptr<detail::InputSource> source);

  // ---- the driver's, from within a turn of the loop, without the client's mutex ----

  /// The server takes `more` items of the call, which was sent on that connection.
  void grant(ClientConnection& connection, ClientCall& call, std::uint64_t more);
  /// The connection may take more again.
  void resume(ClientConnection& connection, ClientCall& call);

  // ---- any thread ----

  /// Destroys the source: nothing more is sent. A coroutine that waits ends on the thread that drives; before this
  /// returns where none does. Without the client's mutex.
  void close() noexcept;
  /// Whether the server has taken any of it: then the call is not made once more. With the client's mutex.
  [[nodiscard]] bool has_begun() const noexcept { return begun_; }

 private:
  enum class Written : bool { yes, no };
  using Next = detail::InputSource::Next;

  // InputDriver.
  [[nodiscard]] TaskScope& tasks() override { return core_.shared().loop_context.tasks; }
  [[nodiscard]] const std::shared_ptr<detail::Executor>& executor() override {
    return core_.shared().loop_context.tasks.executor();
  }
  void run(std::shared_ptr<detail::Executor::Continuation> work) noexcept override;
  [[nodiscard]] std::function<void()> waker() override;

  void send(ClientConnection& connection, ClientCall& call);
  void wake();
  [[nodiscard]] Next make_next();
  [[nodiscard]] Written write(ClientConnection& connection, ClientCall& call, bool item);
  void append(Buffer& out, MessageForm form, std::string_view id_json, bool item) const;
  [[nodiscard]] bool is_of(const ClientConnection& connection, const ClientCall& call) const noexcept;
  void fail(ClientConnection& connection, ClientCall& call, Error error) noexcept;

  ClientCore& core_;
  std::mutex source_mutex_;  // held while the source is asked, and taken before the client's
  std::unique_ptr<detail::InputSource> source_;
  std::unique_ptr<Writer> writer_;
  Buffer value_;
  ClientConnection* connection_ = nullptr;  // on which the call was sent, once there was credit
  ClientCall* call_ = nullptr;
  std::uint64_t credit_ = 0;
  std::uint64_t sequence_ = 0;
  std::uint64_t written_ = 0;  // where in the connection's output the last item ends
  bool posted_ = false;        // what ends the source, to the thread that drives
  bool begun_ = false;         // guarded by the client's mutex
};

}  // namespace wirecall::net
