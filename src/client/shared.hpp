// ClientShared: what the parts of a client have in common: its options, its endpoints, its loop and what serves the
// calls that come to it. Owned by the ClientCore, outlives all parts.
// Thread: options and endpoints any; the rest is the thread's that drives.
#pragma once

#include "connection/connection.hpp"
#include "framing/json_text.hpp"
#include "http/zlib_deflate.hpp"
#include "message/message_codec.hpp"
#include "runtime/backend.hpp"
#include "wirecall/codec.hpp"
#include "wirecall/endpoint.hpp"
#include "wirecall/loop.hpp"
#include "wirecall/options.hpp"
#include "wirecall/registry.hpp"

namespace wirecall::net {

struct ClientShared {
  /// Throws std::invalid_argument for options that cannot be, and for no endpoint.
  ClientShared(std::vector<Endpoint> endpoints, ClientOptions options, std::unique_ptr<runtime::Backend> backend,
               ConnectionOwner& owner);
  ClientShared(ClientShared&&) = delete;

  [[nodiscard]] const message::MessageCodec& encoding() const noexcept { return message::codec_of(options.encoding); }
  /// In which calls are written.
  [[nodiscard]] const message::MessageCodec& written() const noexcept { return message::codec_of(form.written()); }
  [[nodiscard]] const Codec& codec() const noexcept { return written().values(); }
  [[nodiscard]] bool writes_natively() const noexcept { return form.natively; }
  /// The server may call methods of this client.
  [[nodiscard]] bool provides() const noexcept { return !registry.methods().empty(); }

  const ClientOptions options;
  const MessageForm form;  ///< of what is written
  const std::vector<Endpoint> endpoints;
  Registry registry;
  Loop loop;
  rpc::LoopContext loop_context;
  framing::JsonTextSettings text;
  ZlibDeflate deflate;
  Host host;
  std::unique_ptr<Reader> reader = json_codec().reader();
};

/// Calls a function of the user's. When it throws, that is logged as `failure`, and all goes on.
template <class Function>
void call_user(const LogSink& log, std::string_view failure, std::string_view name, const Function& function) noexcept {
  try {
    function();
  } catch (const std::exception& error) {
    log(LogLevel::error, failure, {{"name", name}, {"error", error.what()}});
  } catch (...) {
    log(LogLevel::error, failure, {{"name", name}, {"error", "what is no std::exception"}});
  }
}

}  // namespace wirecall::net
