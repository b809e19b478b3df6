// BrokerSession: what a client is to a broker: rpc.hello says who it is, then all is declared that it provides and
// subscribes to, each time that the first connection is made, before any call; the answers come back here, and events
// go to their subscriptions. What is declared, and the texts of it, are in declarations.hpp. See docs/client.md, "At a
// broker".
// Thread: any, without the mutex, but where a Lock is given or it says otherwise.
#pragma once

#include <condition_variable>
#include <functional>

#include "client/declarations.hpp"
#include "client/outstanding_calls.hpp"

namespace wirecall::net {

class BrokerSession {
 public:
  BrokerSession(ClientShared& shared, Driver& driver, ConnectionPool& connections, OutstandingCalls& calls) noexcept
      : shared_(shared), driver_(driver), connections_(connections), calls_(calls) {}
  BrokerSession(BrokerSession&&) = delete;

  // What users do: see Client.
  void provide(std::string_view name, const ProvideOptions& options, const std::function<Method&(Registry&)>& add);
  bool unprovide(std::string_view name);
  [[nodiscard]] std::shared_ptr<ClientSubscription> subscribe(std::string_view pattern, SubscribeOptions options,
                                                              EventFunction function);
  [[nodiscard]] std::shared_ptr<ClientSubscription> consume(std::string_view pattern, SubscribeOptions options,
                                                            ConsumerFunction function, std::weak_ptr<ClientCore> core);
  /// Answers an event of a consumer: `message` is the whole response.
  void reply(std::string message);
  [[nodiscard]] std::shared_ptr<ClientSubscription> tap(std::string_view pattern, EventFunction function);
  void unsubscribe(ClientSubscription& subscription) noexcept;
  void on_refused(RefusedFunction function) { set(on_refused_, std::move(function)); }
  void on_lagged(LaggedFunction function) { set(on_lagged_, std::move(function)); }

  // With the mutex held.
  [[nodiscard]] bool declares() const noexcept { return !declarations_.empty(); }
  /// Waits until the broker has accepted all that is declared; throws its refusal, or ConnectionError.
  void await_declared(Lock& lock);
  /// The connection is being made: says rpc.hello, and declares.
  void greet(ClientConnection& connection);
  void connection_ended(const ClientConnection& connection) noexcept;

  // The driver's: what has come. Each is true when the message was for it.
  [[nodiscard]] bool greeted(Lock& lock, ClientConnection& connection, const Received& message);
  [[nodiscard]] bool declared(Lock& lock, ClientConnection& connection, const Received& message);
  /// Without the mutex.
  [[nodiscard]] bool event(const ClientConnection& connection, const Received& message);
  /// Likewise: an event of a durable topic, which is answered once its function has returned.
  [[nodiscard]] bool asked(ClientConnection& connection, const Received& message);

 private:
  template <class Function>
  void set(std::shared_ptr<const Function>& member, Function function) {
    auto shared = function ? std::make_shared<const Function>(std::move(function)) : nullptr;
    const Lock lock = driver_.lock();
    member.swap(shared);
  }
  void add(const std::shared_ptr<ClientSubscription>& subscription);
  void say_hello(ClientConnection& connection);
  void declare(ClientConnection& connection);
  void declare_now(Lock& lock);
  void say(Lock& lock, ClientConnection& connection, std::string message);
  void hello_refused(Lock& lock, ClientConnection& connection, const Error& why);
  void tell_refused(Lock& lock, const std::vector<std::string>& names, const Error& refusal);
  void deliver(ClientSubscription& subscription, const Event& event);
  void lagged(const Received& message);

  ClientShared& shared_;
  Driver& driver_;
  ConnectionPool& connections_;
  OutstandingCalls& calls_;
  Declarations declarations_;
  std::vector<std::string> withdrawn_;  // methods provided once, and still in the registry
  std::condition_variable event_over_;  // a subscription's function has returned
  std::shared_ptr<const RefusedFunction> on_refused_;
  std::shared_ptr<const LaggedFunction> on_lagged_;
};

}  // namespace wirecall::net
