// Declarations: what a client declares to a broker on each connection anew: the methods that it provides and the topics
// that it subscribes to, with the messages that say so, and what the broker has answered to each. It writes texts and
// reads answers; what is sent and when is the BrokerSession's. Guarded by the client's mutex.
// See docs/client.md, "At a broker".
#pragma once

#include "wirecall/error.hpp"
#include "wirecall/provider.hpp"
#include "wirecall/registry.hpp"
#include "wirecall/subscription.hpp"

namespace wirecall::net {

/// One method, or one subscription.
struct Declaration {
  std::string name;                   ///< the method, or the topic
  std::string params;                 ///< of rpc.subscribe or rpc.tap; of rpc.register, one element of `methods`
  std::uint64_t message = 0;          ///< the number of the one that says so on the present connection; 0 for none yet
  bool apart = false;                 ///< of a method: to be said in a message of its own
  bool together = false;              ///< of a method: that message says it of others as well
  bool answered = false;              ///< that message
  std::optional<Error> refusal = {};  ///< by the last answer
};

struct ClientSubscription : Declaration {
  SubscribeOptions options;
  EventFunction function;          ///< the driver's
  ConsumerFunction consumer;       ///< in its place, of one that joins a consumer
  std::weak_ptr<ClientCore> core;  ///< of that one, for its replies
  bool ended = false;
  bool calling = false;    ///< the function
  bool tap = false;        ///< no subscription: what a broker shows by rpc.tap, which is its name
  bool inherited = false;  ///< another one to the same topic, which the broker may have, has ended
};

class Declarations {
 public:
  using Subscriptions = std::vector<std::shared_ptr<ClientSubscription>>;

  [[nodiscard]] bool empty() const noexcept { return methods_.empty() && subscriptions_.empty(); }

  /// Throws std::invalid_argument for options that cannot be.
  [[nodiscard]] static Declaration of_method(const Method& method, const ProvideOptions& options);
  /// Throws std::invalid_argument for what is no topic or pattern, and for no function.
  [[nodiscard]] static std::shared_ptr<ClientSubscription> of_topic(std::string_view pattern, SubscribeOptions options,
                                                                    EventFunction function);
  /// The same of one that joins a consumer.
  [[nodiscard]] static std::shared_ptr<ClientSubscription> of_consumed_topic(std::string_view pattern,
                                                                             SubscribeOptions options,
                                                                             ConsumerFunction function);
  /// The same for what is no pattern.
  [[nodiscard]] static std::shared_ptr<ClientSubscription> of_tap(std::string_view pattern, EventFunction function);
  void add(Declaration method) { methods_.push_back(std::move(method)); }
  /// Throws std::invalid_argument where there is one to the same topic that differs in group or echo, or a tap of
  /// another pattern: to a broker both are the same.
  void add(std::shared_ptr<ClientSubscription> subscription);
  /// No longer provides that method: nullopt when it is not; else whether the server may have it, which has been told
  /// of it and has not refused it.
  [[nodiscard]] std::optional<bool> remove_method(std::string_view name) noexcept;
  /// True when the server may have it, and no other one is to the same topic: it is to be told that it has ended.
  bool remove(const ClientSubscription& subscription) noexcept;
  /// Those that take the topic.
  [[nodiscard]] Subscriptions of_event(std::string_view topic) const;
  /// The one that joins the consumer; null for none.
  [[nodiscard]] std::shared_ptr<ClientSubscription> of_consumer(std::string_view name) const;

  /// Appends the messages that say what has not been said on this connection: one for all methods that are not `apart`,
  /// one for each other and each subscription. Returns how many; all or, when it throws, none.
  std::size_t append_messages(std::vector<std::string>& out);
  /// The connection is gone: all is to be said again.
  void forget_messages() noexcept;

  /// Whether a response with this id is to such a message.
  [[nodiscard]] static bool is_answer(std::string_view id) noexcept;
  /// The answer has come: `refusal` says whether it is one. Returns the names of what that settles. The refusal of
  /// several methods does not say which is meant: they are to be said again, each apart.
  [[nodiscard]] std::vector<std::string> answered(std::string_view id, const std::optional<Error>& refusal);
  /// The server knows no such client: all that has not been answered on this connection is refused. Returns the names.
  [[nodiscard]] std::vector<std::string> refuse(const Error& why);
  /// Of all that is declared.
  [[nodiscard]] std::vector<std::string> names() const;
  /// Whether all has been answered on this connection.
  [[nodiscard]] bool all_answered() const noexcept;
  /// The first of all that is refused; null for none.
  [[nodiscard]] const Declaration* refused() const noexcept;

 private:
  template <class Use>
  void each(const Use& use) {
    for (Declaration& method : methods_) use(method, true);
    for (const auto& subscription : subscriptions_) use(*subscription, false);
  }

  std::vector<Declaration> methods_;
  Subscriptions subscriptions_;
  std::uint64_t last_message_ = 0;
};

}  // namespace wirecall::net
