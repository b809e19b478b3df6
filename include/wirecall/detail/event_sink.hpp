// EventSink: one subscription to a stream of a method that was declared by Registry::subscription, from its request to
// its end: where the stream's values go, each as one notification, and what its handler may know. The subscription ends
// when the sink goes. Owned by the task that passes the values on; one thread. Not for users.
#pragma once

#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "wirecall/context.hpp"
#include "wirecall/detail/items.hpp"
#include "wirecall/task.hpp"

namespace wirecall::detail {

class EventSink {
 public:
  EventSink(std::string id, Context context, std::shared_ptr<Items> items) noexcept
      : id_(std::move(id)), context_(std::move(context)), items_(std::move(items)) {}
  EventSink(EventSink&&) = delete;
  virtual ~EventSink() = default;

  /// What the subscribing call is answered with.
  [[nodiscard]] const std::string& id() const noexcept { return id_; }
  /// Stop is requested when the subscription is ended from the other side: unsubscribed, or its connection has gone.
  [[nodiscard]] const Context& context() const noexcept { return context_; }
  [[nodiscard]] Items& items() noexcept { return *items_; }
  /// To be awaited before the first item: that answer has been written. Throws Cancelled when that was an error.
  [[nodiscard]] virtual Completion<> answered() = 0;
  /// The stream has thrown: the caller is told, if the subscription has not been ended.
  virtual void fail(const std::exception_ptr& error) noexcept = 0;

 private:
  std::string id_;
  Context context_;
  std::shared_ptr<Items> items_;
};

}  // namespace wirecall::detail
