// Channel: the google::protobuf::RpcChannel over a Client. Generated stubs call through it; coroutines call through
// `call`, which needs no closure and no controller:
//     wirecall::protobuf::Channel channel{client};
//     echo::EchoService_Stub stub{&channel};
//     EchoResponse response = co_await channel.call<&echo::EchoService_Stub::Echo>(request).timeout(50ms);
// A method is called by its full name in the .proto, as "echo.EchoService.Echo", with the request as its params.
// Thread: any, as the Client, which outlives it.
#pragma once

#include <google/protobuf/service.h>
#include <string>
#include <string_view>

#include "wirecall/client.hpp"
#include "wirecall/function_name.hpp"
#include "wirecall/protobuf/message_json.hpp"

namespace wirecall::protobuf {

namespace detail {

/// Writes a message as all of a call's params.
void write_params(Writer& writer, const google::protobuf::Message& request, bool as_bytes);
/// The full name of a service's method. Throws std::logic_error where there is none of that name.
[[nodiscard]] const std::string& method_name(const google::protobuf::ServiceDescriptor& service, std::string_view name);

template <class M>
struct StubMethod;
template <class S, class Q, class R>
struct StubMethod<void (S::*)(google::protobuf::RpcController*, const Q*, R*, google::protobuf::Closure*)> {
  using Stub = S;
  using Request = Q;
  using Response = R;
};

template <auto Method>
constexpr std::string_view last_word() {
  constexpr std::string_view name = wirecall::method_name<Method>();
  return name.substr(name.rfind('.') + 1);
}

}  // namespace detail

struct ChannelOptions {
  /// Requests go as the messages' own bytes, and responses come so: unknown fields are kept, and there is no JSON. What
  /// serves them has to know such messages (add_service, Service, C++ methods that take them); brokers need not.
  bool as_bytes = false;
};

class Channel final : public google::protobuf::RpcChannel {
 public:
  explicit Channel(Client& client, ChannelOptions options = {}) noexcept : client_(&client), options_(options) {}

  /// What stubs call. Without `done` it blocks for the response; where that would block a loop (in a handler, callback
  /// or coroutine), the call fails at once. With `done` it returns, and the closure runs on the thread that drives the
  /// client. An error is in the controller, of which `controller` should be a Controller; without one a call that
  /// blocks throws it, and one that does not leaves the response empty.
  void CallMethod(const google::protobuf::MethodDescriptor* method, google::protobuf::RpcController* controller,
                  const google::protobuf::Message* request, google::protobuf::Message* response,
                  google::protobuf::Closure* done) override;

  /// Prepares a call of a generated stub's method, to be made in any of the ways of a Request: co_await it, block by
  /// `call()`, `then`, `future`; with `timeout`, `stop`, `within`.
  template <auto Method>
  [[nodiscard]] Request<typename detail::StubMethod<decltype(Method)>::Response> call(
      const typename detail::StubMethod<decltype(Method)>::Request& request) {
    using M = detail::StubMethod<decltype(Method)>;
    static const std::string& name = detail::method_name(*M::Stub::descriptor(), detail::last_word<Method>());
    return call<typename M::Response>(name, request);
  }
  /// The same without a stub: of a method by its full name.
  template <std::derived_from<google::protobuf::Message> Response>
  [[nodiscard]] Request<Response> call(std::string_view full_name, const google::protobuf::Message& request) {
    wirecall::detail::OutgoingCall call = client_->outgoing(full_name);
    detail::write_params(call.params(), request, options_.as_bytes);
    return Request<Response>{std::move(call)};
  }

 private:
  Client* client_;
  ChannelOptions options_;
};

}  // namespace wirecall::protobuf
