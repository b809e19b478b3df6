// See node.hpp: what a node's clients provide.
#include "cluster/exclusive_claims.hpp"
#include "cluster/node.hpp"
#include "rpc/access.hpp"

namespace wirecall::cluster {

// Of one node, as kMethodsMax.
constexpr std::size_t kDescribedBytesMax = std::size_t{64} << 20;

void Node::take_methods(std::string_view json) {
  if (provides_ == nullptr) return;
  bool all = false;
  const MethodNewsHandlers handlers{
      .set = [this](broker::Registration registration) { take_method(std::move(registration)); },
      .gone =
          [this](std::string_view method) {
            end_method(method);
            context_->supersede(name_, method);
          }};
  if (!read_method_news(json, context_->host.loop_context.codecs.codec, handlers, all)) refuse_news("methods");
  if (!all || state_ == State::up) return;
  become(State::up);
  former_methods_.clear();
  count_absent();
  context_->supersede(name_, {});
  provider().tells_itself = true;
  context_->log(LogLevel::info,
                "cluster: node " + name_ + " is up, with " + std::to_string(methods_.size()) + " methods");
}

// Of a method that wants one provider that of the process before goes first; else calls that wait there go to this one.
void Node::take_method(broker::Registration registration) {
  const std::string method = registration.name;
  if (registration.policy == broker::Policy::exclusive) context_->supersede(name_, method);
  set_method(std::move(registration));
  context_->supersede(name_, method);
}

// One that this broker has itself, or knows otherwise, is not called there; the latter as long as that holds.
void Node::set_method(broker::Registration registration) {
  const std::string method = registration.name;
  if (context_->host.registry.find(method) != nullptr) return;
  static_cast<void>(take_withheld(method));
  if ((methods_.size() + withheld_.size() >= kMethodsMax && !methods_.contains(method)) ||
      provider().described_bytes + withheld_bytes_ + registration.description.bytes() > kDescribedBytesMax)
    return refuse("it has more than " + std::to_string(kMethodsMax) + " methods, or describes them at more than " +
                  std::to_string(kDescribedBytesMax >> 20) + " MiB; the others are not called from here");
  registration.policy_given = true;
  end_former(registration);
  if (!admit_exclusive(*context_, {&provider(), heartbeat_.epoch, name_}, registration))
    return withhold(std::move(registration));
  const broker::Route* const route = context_->router.methods().find_registered(method);
  std::optional<broker::Registration> kept;
  if (route != nullptr) kept = registration;
  std::vector<broker::Registration> one;
  one.push_back(std::move(registration));
  try {
    context_->router.registrar().register_methods(provider(), std::move(one));
    methods_.insert(method);
  } catch (const Error& error) {
    refuse(method + " is not called from here: " + error.data() + "; register it alike on all nodes");
    if (!kept) return;
    const bool ends = !route->is_provided();
    withhold(*std::move(kept));
    if (ends) context_->may_admit(method);
  }
}

// Of a method that the node has otherwise from now on, what it has said before does not hold.
void Node::end_former(const broker::Registration& registration) {
  const auto found = methods_.find(registration.name);
  const broker::Route* const route = context_->router.methods().find_registered(registration.name);
  if (found == methods_.end() || route == nullptr) return;
  const bool alike = route->policy() == registration.policy && route->hash_param() == registration.hash_param &&
                     route->description.is_of_kind(registration.description);
  if (alike) return;
  static_cast<void>(drop_method(registration.name));
}

void Node::withhold(broker::Registration registration) {
  const std::string method = registration.name;
  static_cast<void>(take_withheld(method));
  static_cast<void>(drop_method(method));  // it was registered otherwise before
  const std::size_t bytes = registration.description.bytes();
  withheld_.emplace(method, std::move(registration));
  withheld_bytes_ += bytes;
  ++context_->withheld;
}

std::optional<broker::Registration> Node::take_withheld(std::string_view method) {
  const auto found = withheld_.find(method);
  if (found == withheld_.end()) return std::nullopt;
  broker::Registration registration = std::move(withheld_.extract(found).mapped());
  withheld_bytes_ -= registration.description.bytes();
  --context_->withheld;
  return registration;
}

bool Node::admit_withheld(std::string_view method) {
  const broker::Route* const route = context_->router.methods().find_registered(method);
  const auto found = withheld_.find(method);
  if (found == withheld_.end() || provides_ == nullptr) return true;
  if (route != nullptr && !route->is_provided() && !route->description.is_of_kind(found->second.description))
    return false;
  try {
    set_method(*take_withheld(method));
  } catch (const std::bad_alloc&) {
    link_.fail();  // the next session tells all
    return true;
  }
  if (methods_.contains(method))
    context_->log(LogLevel::info, "cluster: node " + name_ + ": " + std::string{method} + " is called from here now");
  return true;
}

void Node::end_method(std::string_view method) {
  static_cast<void>(take_withheld(method));
  if (drop_method(method)) context_->may_admit(method);
}

bool Node::drop_method(std::string_view method) {
  const auto found = methods_.find(method);
  if (found == methods_.end()) return false;
  static_cast<void>(context_->router.registrar().unregister(provider(), method));
  methods_.erase(found);
  return true;
}

void Node::forget_methods() {
  context_->withheld -= withheld_.size();
  withheld_.clear();
  withheld_bytes_ = 0;
  if (context_->withheld != 0) {
    for (const std::string& method : methods_) context_->may_admit(method);
  }
  if (former_methods_.size() < kMethodsMax) former_methods_.merge(methods_);
  count_absent();
  methods_.clear();
}

bool is_among(const MethodNames& names, std::string_view method) noexcept {
  if (names.empty()) return false;
  const auto has = [&names](std::string_view name) { return names.contains(name); };
  return has(method) || (is_name(method) && broker::any_prefix(method, has));
}

bool Node::provides(std::string_view method) const noexcept { return is_open() && is_among(methods_, method); }

std::optional<broker::LostBy> Node::lost_by(std::string_view method, bool exactly) const noexcept {
  if (!counts_as_absent_) return std::nullopt;
  const auto are_of = [&](const MethodNames& names) {
    return exactly ? names.contains(method) : is_among(names, method);
  };
  if (state_ == State::unreachable && are_of(methods_)) return broker::LostBy::bus;
  if (!are_of(former_methods_) || are_of(methods_)) return std::nullopt;
  return state_ == State::unreachable ? broker::LostBy::bus : broker::LostBy::node;
}

}  // namespace wirecall::cluster
