// ExclusiveLeases: where brokers share a durable store, a method that wants one provider is registered once its broker
// has a lease of its name, which only one broker has at a time; what the lease is known by grows from holder to holder,
// so that what a provider of before still writes can be told from what the present one does (a fencing token). A lease
// is renewed as long as the method is provided; where it cannot be, the registration ends before another may have it.
// One thread. Implements docs/cluster.md "Leases".
#pragma once

#include <map>
#include <set>

#include "broker/context.hpp"
#include "broker/registrar.hpp"
#include "durable/store.hpp"
#include "wirecall/message.hpp"

namespace wirecall::broker {

class ExclusiveLeases final : private Timer {
 public:
  /// `store` may be null. All referred to outlive it.
  ExclusiveLeases(BrokerContext& context, Registrar& registrar, durable::Store* store);
  ExclusiveLeases(ExclusiveLeases&&) = delete;
  ~ExclusiveLeases();
  /// There is a store now. Once, where there was none.
  void open(durable::Store& store) { store_ = &store; }

  /// The method that serves the message under that reserved name; null where it is none of this.
  [[nodiscard]] const Method* find(std::string_view name, const Received& message);
  /// Somebody has registered it, or does not provide it any more.
  void provided_changed(std::string_view method) noexcept;
  /// Ends the registration of a method, about to be called, whose lease is not in force any more. Whether it did.
  [[nodiscard]] bool end_late(std::string_view method) noexcept;

 private:
  struct Held {
    std::uint64_t peer;      // its number
    std::uint64_t token;     // the first number of the lease
    std::uint64_t revision;  // the last one
    std::chrono::nanoseconds until;
    bool renews = false;
  };
  /// A call of rpc.register that waits for leases.
  struct Asking;

  void register_methods(Call& call);
  void lease(Call& call);
  void ask_next(const std::shared_ptr<Asking>& asking);
  void leased(const std::shared_ptr<Asking>& asking, std::chrono::nanoseconds asked_at,
              const durable::Outcome<durable::Leased>& outcome);
  void finish(const std::shared_ptr<Asking>& asking);
  void ended(const Asking& asking) noexcept;
  [[nodiscard]] bool is_provided(const std::string& method, const Held& held) const noexcept;
  void release(const std::string& method);
  void renew(const std::string& method, Held& held);
  void lose(const std::string& method, std::string_view why);
  void expired() override;
  void wait();

  BrokerContext* context_;
  Registrar* registrar_;
  durable::Store* store_;
  const Method register_;
  const Method lease_;
  std::map<std::string, Held, std::less<>> held_;
  std::set<std::string, std::less<>> asked_for_;  // that the store is asked for
  bool waits_ = false;
  const std::shared_ptr<char> alive_ = std::make_shared<char>();  // as long as the store may answer
};

}  // namespace wirecall::broker
