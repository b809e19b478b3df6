// Restarts without a gap of a broker with a durable store: what was acknowledged is there, consumers and jobs go on,
// and the old process keeps its store where the other does not come up.
#include <array>
#include <atomic>
#include <charconv>
#include <condition_variable>
#include <fstream>
#include <gtest/gtest.h>
#include <memory>
#include <mutex>
#include <set>
#include <signal.h>
#include <string>
#include <thread>
#include <vector>

#include "tests/cli/process.hpp"
#include "tests/server/folder.hpp"
#include "wirecall/client.hpp"

namespace wirecall::cli {
namespace {

class DurableRestart : public testing::Test {
 protected:
  DurableRestart() {
    setenv("XDG_RUNTIME_DIR", folder_.path.c_str(), 1);
    configure("data");
    server_ = std::make_unique<Process>(
        std::vector<std::string>{"serve", "-c", config_, "--listen", folder_.socket(), "--drain-ms", "1000"});
    server_->read_error_until("unix://");
  }
  ~DurableRestart() override {
    if (pid() != server_->id()) kill(pid(), SIGKILL);
    unsetenv("XDG_RUNTIME_DIR");
  }
  void configure(const std::string& folder) const {
    std::ofstream{config_} << "[durable]\npath = \"" << folder_.path << "/" << folder << "\"\n";
  }
  void restart() {
    ++restarts_;
    kill(pid_ != 0 ? pid_ : server_->id(), SIGUSR2);
    const std::string word = "another process has taken over";
    const std::string log = server_->read_error_until(word, restarts_);
    const std::size_t at = log.find("pid=", log.rfind(word));
    ASSERT_NE(at, std::string::npos) << log;
    std::from_chars(log.data() + at + 4, log.data() + log.size(), pid_);
  }
  [[nodiscard]] pid_t pid() const { return pid_ != 0 ? pid_ : server_->id(); }
  [[nodiscard]] Client client(const std::string& name) const {
    ClientOptions options;
    options.client_id = name;
    return Client{folder_.socket(), options};
  }

  const net::Folder folder_;
  const std::string config_ = folder_.path + "/wirecall.toml";
  std::unique_ptr<Process> server_;
  pid_t pid_ = 0;
  int restarts_ = 0;
};

// What several threads have seen.
class SeenNumbers {
 public:
  void add(int number) {
    const std::scoped_lock lock{mutex_};
    numbers_.insert(number);
    changed_.notify_all();
  }
  // False where they have not come in time: all from 0 on.
  [[nodiscard]] bool has_come_to(int count) {
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, std::chrono::seconds{kSecondsMax},
                             [&] { return static_cast<int>(numbers_.size()) >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<int> numbers_;
};

TEST_F(DurableRestart, no_event_is_lost_whose_publish_was_answered_and_a_consumer_goes_on) {
  SeenNumbers seen;
  Client consumer = client("consumer");
  const Subscription billing = consumer.subscribe("orders.>", {.durable = "billing", .start = "first"},
                                                  [&](const Event& event) { seen.add(event.as<int>()); });
  consumer.connect();
  std::atomic<int> published{0};
  std::atomic<bool> over{false};
  std::jthread publishing{[&] {
    Client publisher = client("publisher");
    while (!over.load()) {
      const int number = published.load();
      try {
        static_cast<void>(publisher.publish_durable("orders.new", number, "order-" + std::to_string(number)));
      } catch (const Error& error) {
        ADD_FAILURE() << number << ": " << error.what();
      }
      ++published;
    }
  }};
  const auto go_on = [&](int count) {
    for (const int until = published.load() + count; published.load() < until;) std::this_thread::yield();
  };
  for (int i = 0; i != 3; ++i) {
    go_on(20);
    restart();
  }
  go_on(20);
  over.store(true);
  publishing.join();
  EXPECT_TRUE(seen.has_come_to(published.load()));
}

TEST_F(DurableRestart, jobs_wait_and_run_at_the_new_process_and_results_are_there) {
  struct Pushed {
    std::uint64_t id;
  };
  struct Result {
    std::string state;
    std::optional<int> result;
  };
  Client caller = client("caller");
  const auto push = [&](int number) {
    return caller.call<Pushed>("rpc.queue.push", arg("method") = "double", arg("params") = std::array<int, 1>{number})
        .id;
  };
  const std::uint64_t first = push(1);
  restart();
  const std::uint64_t second = push(2);
  SeenNumbers done;
  Client worker = client("worker");
  const Subscription ends = worker.subscribe(
      "queue.done.double", [&](const Event& event) { done.add(static_cast<int>(event.as<Pushed>().id)); });
  worker.provide("double", [](int number) { return 2 * number; });
  worker.connect();
  EXPECT_TRUE(done.has_come_to(2));
  restart();
  for (const std::uint64_t id : {first, second}) {
    const auto result = caller.call<Result>("rpc.queue.result", id);
    EXPECT_EQ(result.state, "done");
    EXPECT_EQ(result.result, id == first ? 2 : 4);
  }
}

TEST_F(DurableRestart, a_process_that_cannot_open_its_store_leaves_the_old_one_with_its_own) {
  Client caller = client("caller");
  EXPECT_EQ(caller.publish_durable("orders.new", 1).seq, 1U);
  std::filesystem::create_directory(folder_.path + "/other");
  std::ofstream{folder_.path + "/other/wirecall.db"} << "this is no database, and large enough to be taken for one";
  configure("other");
  kill(pid(), SIGUSR2);
  const std::string log = server_->read_error_until("no other process takes over, and this one goes on");
  EXPECT_NE(log.find("is no store of wirecall"), std::string::npos) << log;
  EXPECT_EQ(caller.publish_durable("orders.new", 2).seq, 2U);
}

}  // namespace
}  // namespace wirecall::cli
