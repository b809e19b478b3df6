// Lock, Unlocked and Waiting: the vocabulary of a client's one mutex. A function that takes a `Lock&` is called with
// the mutex held; one that says so lets go of it meanwhile.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <vector>

namespace wirecall::net {

using Lock = std::unique_lock<std::mutex>;

/// While it exists, the mutex is free.
struct Unlocked {
  explicit Unlocked(Lock& held) : lock(held) { lock.unlock(); }
  Unlocked(Unlocked&&) = delete;
  ~Unlocked() { lock.lock(); }
  Lock& lock;
};

/// A thread that blocks until some of its calls have ended.
struct Waiting {
  std::condition_variable ready;  ///< they have, or it is this thread's turn to drive
  std::size_t unfinished = 0;
};

/// An entry of a list for as long as this exists.
class Listed {
 public:
  Listed(std::vector<Waiting*>& list, Waiting& entry) : list_(&list), entry_(&entry) { list_->push_back(entry_); }
  Listed(Listed&&) = delete;
  ~Listed() { std::erase(*list_, entry_); }

 private:
  std::vector<Waiting*>* list_;
  Waiting* entry_;
};

}  // namespace wirecall::net
