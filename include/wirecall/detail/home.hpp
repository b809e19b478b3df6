// Home: the thread on which a task goes on when what it waits for happens on another one. The loop of a server or
// client is home to the tasks that it has started; a task started by hand has none, and goes on where it is woken.
// Shared by whoever may still wake a task; thread: any.
#pragma once

#include <functional>

namespace wirecall::detail {

class Home {
 public:
  using Job = std::move_only_function<void()>;

  /// Runs `job`, which does not throw, on the home thread in its next turn; drops it when there is none any more.
  virtual void go_on(Job job) = 0;

 protected:
  ~Home() = default;
};

}  // namespace wirecall::detail
