// Home: the thread on which a task goes on when what it waits for happens on another one. The loop of a server or
// client is home to the tasks that it has started; a task started by hand has none, and goes on where it is woken.
// Shared by whoever may still wake a task; thread: any.
#pragma once

#include <memory>

namespace wirecall::detail {

class Home {
 public:
  /// What is to be done at home. It has the link to the next one with it, so that sending it there needs no memory: who
  /// waits has been given what it takes to be woken.
  class Arrival {
   public:
    Arrival() = default;
    Arrival(Arrival&&) = delete;
    virtual ~Arrival() = default;

    virtual void arrive() noexcept = 0;

    std::shared_ptr<Arrival> next;  ///< the home's, as long as it waits there
  };

  /// `arrival` arrives on the home thread in its next turn; it is dropped when there is none any more. Once.
  virtual void go_on(std::shared_ptr<Arrival> arrival) noexcept = 0;

 protected:
  ~Home() = default;
};

}  // namespace wirecall::detail
