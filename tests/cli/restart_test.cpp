// Restarts without a gap: `wirecall serve` that another process takes over from, by SIGUSR2 and by --replace, while
// clients connect and call all the time; and what happens where the other does not come up.
#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <gtest/gtest.h>
#include <memory>
#include <mutex>
#include <optional>
#include <signal.h>
#include <sstream>
#include <string>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <vector>

#include "cli/restart/restart_channel.hpp"
#include "cli/restart/restart_path.hpp"
#include "cli/restart/restart_protocol.hpp"
#include "tests/cli/process.hpp"
#include "tests/server/engines.hpp"
#include "tests/server/folder.hpp"
#include "tests/transport/certificates.hpp"
#include "transport/endpoint_socket.hpp"
#include "transport/setup.hpp"
#include "wirecall/client.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::cli {
namespace {

/// A server, and those that take over from it one after the other, each started by the one before: all print to the
/// stderr of the first.
class Restarted {
 public:
  explicit Restarted(std::vector<std::string> words) : first_(std::move(words)), pid_(first_.id()) {}
  Restarted(Restarted&&) = delete;
  ~Restarted() {
    if (pid_ != first_.id()) kill(pid_, SIGKILL);
  }

  /// Another process has taken over when this returns.
  void restart() {
    kill(pid_, SIGUSR2);
    const std::string word = "another process has taken over";
    first_.read_error_until("this process has taken over", ++restarts_);
    const std::string told = first_.read_error_until(word, restarts_);
    const std::size_t at = told.rfind(word);
    ASSERT_NE(at, std::string::npos) << told;
    const std::string log = first_.read_error_line(at);
    const std::size_t number = log.find("pid=");
    ASSERT_NE(number, std::string::npos) << log;
    std::from_chars(log.data() + number + 4, log.data() + log.size(), pid_);
  }
  /// The last of them ends, and all others have.
  std::string end() {
    kill(pid_, SIGTERM);
    return first_.rest_of_error();
  }
  Process& first() { return first_; }
  pid_t pid() const { return pid_; }

 private:
  Process first_;
  pid_t pid_;
  int restarts_ = 0;
};

/// Clients of all kinds that call all the time.
class Load {
 public:
  explicit Load(const std::vector<std::string>& urls, std::string method = "subtract", std::string provider = {})
      : method_(std::move(method)), provider_(std::move(provider)) {
    for (const std::string& url : urls) {
      threads_.emplace_back([this, url] {
        while (!over_.load()) {
          Client client{url, options_of(url)};
          call(client, url + ", a new client");
        }
      });
      threads_.emplace_back([this, url] {
        ClientOptions options = options_of(url);
        options.client_id = "steady";
        Client client{url, options};
        while (!over_.load()) call(client, url + ", one client");
      });
    }
  }
  Load(Load&&) = delete;
  ~Load() { end(); }
  void end() {
    over_.store(true);
    threads_.clear();
  }
  int calls() const { return calls_.load(); }
  /// So many more calls are answered when this returns.
  void go_on(int calls) const {
    for (const int until = calls_.load() + calls; calls_.load() < until;) std::this_thread::yield();
  }

 private:
  [[nodiscard]] ClientOptions options_of(const std::string& url) const {
    ClientOptions options;
    if (!provider_.empty()) options.wait_ms = 20'000;  // who is named is not there for a moment
    const bool tls = url.starts_with("tls:") || url.starts_with("https:") || url.starts_with("wss:");
    if (tls) options.cafile = transport::usual_certificates().cafile;
    return options;
  }
  void call(Client& client, const std::string& what) {
    try {
      const int difference = client.request<int>(method_, 5, 3).to(provider_).call();
      if (difference != 2) ADD_FAILURE() << what;
    } catch (const Error& error) {
      ADD_FAILURE() << what << ": " << error.what();
    }
    ++calls_;
  }

  const std::string method_;
  const std::string provider_;
  std::atomic<bool> over_{false};
  std::atomic<int> calls_{0};
  std::vector<std::jthread> threads_;
};

/// A folder in which --replace finds servers.
class Restart : public testing::Test {
 protected:
  Restart() { setenv("XDG_RUNTIME_DIR", folder_.path.c_str(), 1); }
  ~Restart() override { unsetenv("XDG_RUNTIME_DIR"); }

  [[nodiscard]] std::vector<std::string> serve(std::vector<std::string> more = {}) const {
    std::vector<std::string> words{"serve", "--demo", "--listen", folder_.socket()};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  [[nodiscard]] std::string path() const { return restart_path(std::vector{Endpoint{folder_.socket()}}); }
  void make_runtime_folder() const {
    std::filesystem::create_directory(folder_.path + "/wirecall");
    std::filesystem::permissions(folder_.path + "/wirecall", std::filesystem::perms::owner_all);
  }
  [[nodiscard]] bool is_served() const {
    Client client{folder_.socket()};
    return client.call<int>("subtract", 5, 3) == 2;
  }

  const net::Folder folder_;
};

/// The socket at that path, with whatever speaks there.
runtime::Descriptor connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  runtime::Descriptor socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0) << path;
  return socket;
}

/// A process that takes over, as far as the test has it do so.
class Rival {
 public:
  explicit Rival(const std::string& path) : channel_(connect_to(path)) {}

  void hello() { say(RestartHello{.restart = kRestartVersion, .pid = getpid()}); }
  RestartSockets sockets() {
    received_ = channel_.receive(kTime, kRestartStateBytesMax, kRestartDescriptorsMax);
    return *from_json<RestartSockets>(received_.text);
  }
  void ready() { say(RestartReady{}); }
  void state() { state_ = channel_.receive(kTime, kRestartStateBytesMax); }
  void prepared() { say(RestartPrepared{.error = {}, .prepared = true}); }
  [[nodiscard]] std::size_t descriptors() const { return received_.descriptors.size(); }
  /// The server has given up.
  [[nodiscard]] bool is_refused() {
    try {
      static_cast<void>(channel_.receive(kTime, kRestartStateBytesMax));
    } catch (const RestartError& error) {
      return std::string{error.what()}.contains("has given up");
    }
    return false;
  }

 private:
  static constexpr std::chrono::milliseconds kTime{30000};
  template <class T>
  void say(const T& message) {
    channel_.send(to_json(message), kTime);
  }

  RestartChannel channel_;
  RestartMessage received_;
  RestartMessage state_;
};

/// A connection of a client that knows JSON-RPC alone.
class Stock {
 public:
  explicit Stock(const std::string& path) : socket_(connect_to(path)) {}
  void send(std::string_view text) const {
    EXPECT_EQ(::send(socket_.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  }
  /// The next line; empty at the end.
  std::string line() {
    std::array<char, 256> block;
    while (text_.find('\n') == std::string::npos) {
      const ssize_t bytes = recv(socket_.get(), block.data(), block.size(), 0);
      if (bytes <= 0) return {};
      text_.append(block.data(), static_cast<std::size_t>(bytes));
    }
    std::string line = text_.substr(0, text_.find('\n'));
    text_.erase(0, line.size() + 1);
    return line;
  }

 private:
  runtime::Descriptor socket_;
  std::string text_;
};

/// One that provides stock.add, and knows JSON-RPC alone.
class Provider {
 public:
  explicit Provider(const std::string& path) : stock_(path) {
    stock_.send(R"({"jsonrpc":"2.0","method":"rpc.register","params":{"method":"stock.add"},"id":1})");
    EXPECT_NE(stock_.line().find("result"), std::string::npos);
  }
  /// What the client gets for the sum of 1 and 2, which this one is asked for.
  int sum_of(Client& client) {
    std::promise<int> answered;
    client.request<int>("stock.add", 1, 2).then([&](const std::expected<int, Error>& answer) {
      answered.set_value(answer ? *answer : answer.error().code());
    });
    std::future<int> answer = answered.get_future();
    this->answer();
    return answer.get();
  }
  void answer() {
    const std::string asked = stock_.line();
    const std::string_view member = R"("id":)";
    const std::size_t at = asked.find(member);
    ASSERT_NE(at, std::string::npos) << asked;
    EXPECT_NE(asked.find(R"("params":[1,2])"), std::string::npos) << asked;
    const std::string id = asked.substr(at + member.size(), asked.find_first_of(",}", at) - at - member.size());
    stock_.send(R"({"jsonrpc":"2.0","result":3,"id":)" + id + "}");
  }

 private:
  Stock stock_;
};

class RestartEngines : public Restart, public testing::WithParamInterface<Engine> {
 protected:
  void SetUp() override { net::skip_where_refused(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Engines, RestartEngines, net::kEachEngine, net::engine_name);

TEST_P(RestartEngines, ten_in_a_row_are_noticed_by_nobody_who_connects_and_calls) {
  const std::string engine = GetParam() == Engine::epoll ? "epoll" : "uring";
  const transport::TlsFiles& files = transport::usual_certificates().server_files;
  Restarted server{
      serve({"--engine", engine, "--threads", "3", "--listen", "tcp://127.0.0.1:0", "--listen", "shm://calls",
             "--listen", "udp://127.0.0.1:0", "--tls-cert", files.certificate, "--tls-key", files.key})};
  const std::string tcp = "127.0.0.1:" + std::to_string(port_of(server.first()));
  const std::string banner = server.first().read_error_until("nc -q1");
  const std::size_t udp = banner.find("udp://127.0.0.1:");
  ASSERT_NE(udp, std::string::npos) << banner;
  Load load{{"tcp://" + tcp, "http://" + tcp + "/rpc", "ws://" + tcp + "/", "tls://" + tcp, "https://" + tcp + "/rpc",
             "wss://" + tcp + "/", folder_.socket(), "shm://calls",
             banner.substr(udp, banner.find_first_not_of("0123456789", udp + 16) - udp)}};
  load.go_on(200);
  for (int i = 0; i < 10; ++i) {
    server.restart();
    load.go_on(200);
  }
  load.end();
  server.end();
  EXPECT_EQ(server.first().wait(), 0);
}

TEST_F(Restart, a_call_in_progress_is_answered_by_the_old_process) {
  Restarted server{serve({"--drain-ms", "1000"})};
  server.first().read_error_until("Methods:");
  Stock stock{folder_.path + "/calls.sock"};
  stock.send(R"({"jsonrpc":"2.0","method":"sleep","params":[300],"id":1})"
             R"({"jsonrpc":"2.0","method":"subtract","params":[5,3],"id":2})");
  EXPECT_EQ(stock.line(), R"({"jsonrpc":"2.0","result":2,"id":2})");
  server.restart();
  EXPECT_TRUE(stock.line().ends_with(R"("id":1})"));
}

TEST_F(Restart, a_client_that_knows_of_no_restarts_is_served_by_the_old_process_until_drain_ms) {
  Restarted server{serve({"--drain-ms", "300"})};
  server.first().read_error_until("Methods:");
  Stock stock{folder_.path + "/calls.sock"};
  stock.send(R"({"jsonrpc":"2.0","method":"rpc.ping","id":1})");
  EXPECT_NE(stock.line(), "");  // it has been accepted
  server.restart();
  stock.send(R"({"jsonrpc":"2.0","method":"subtract","params":[5,3],"id":2})");
  EXPECT_EQ(stock.line(), R"({"jsonrpc":"2.0","result":2,"id":2})");
  EXPECT_EQ(stock.line(), "");
  EXPECT_EQ(server.first().wait(), 0);
  EXPECT_TRUE(is_served());
  server.end();
}

// ---- what crosses ----

TEST_F(Restart, clients_keep_their_names_and_sessions) {
  Restarted server{serve()};
  server.first().read_error_until("Methods:");
  std::promise<void> again;
  ClientOptions options;
  options.client_id = "worker";
  options.reconnect_min_ms = 1;
  Client worker{folder_.socket(), options};
  worker.on_connection([&, lost = false](const ConnectionEvent& news) mutable {
    if (news.connected && lost) again.set_value();
    lost = lost || !news.connected;
  });
  worker.provide("work", [](int a) { return a + 1; });
  worker.connect();
  server.restart();
  again.get_future().get();
  EXPECT_EQ(server.first().wait(), 0);
  Client client{folder_.socket()};
  EXPECT_EQ(client.call<int>("work", 1), 2);
  const auto clients = client.call<std::string>("echo", to_json(client.call<Value>("rpc.clients")));
  EXPECT_NE(clients.find(R"("name":"worker")"), std::string::npos) << clients;
  EXPECT_EQ(clients.find("worker-"), std::string::npos) << clients;
  server.end();
}

TEST_F(Restart, a_session_of_the_old_process_is_resumed_at_the_new_one) {
  Restarted server{serve({"--drain-ms", "100"})};
  server.first().read_error_until("Methods:");
  const std::string socket = folder_.path + "/calls.sock";
  Stock before{socket};
  before.send(R"({"jsonrpc":"2.0","method":"rpc.hello","params":{"name":"ada"},"id":1})");
  const std::string greeting = before.line();
  const std::string_view member = R"("session":")";
  const std::size_t at = greeting.find(member);
  ASSERT_NE(at, std::string::npos) << greeting;
  const std::string secret = greeting.substr(at + member.size(), 48);
  server.restart();
  Stock after{socket};
  const std::string hello = R"({"jsonrpc":"2.0","method":"rpc.hello","params":{"name":"ada","resume":")";
  after.send(hello + std::string(48, '0') + R"("},"id":1})");
  EXPECT_NE(after.line().find("-32004"), std::string::npos);
  after.send(hello + secret + R"("},"id":2})");
  const std::string resumed = after.line();
  EXPECT_NE(resumed.find(R"("name":"ada")"), std::string::npos) << resumed;
  server.end();
}

TEST_F(Restart, retained_values_cross) {
  Restarted server{serve({"--drain-ms", "100"})};
  server.first().read_error_until("Methods:");
  Client client{folder_.socket()};
  client.publish("news.first", 1, {.retain = true});
  client.publish("news.second", std::string{"two \\ \"2\""}, {.retain = true});
  client.publish("news.third", 3, {.retain = true});
  client.publish("news.third", {.retain = true});  // deleted
  server.restart();
  Client reader{folder_.socket()};
  std::mutex mutex;
  std::vector<std::string> got;
  std::promise<void> both;
  SubscribeOptions last;
  last.last = true;
  const Subscription subscription = reader.subscribe("news.*", last, [&](const Event& event) {
    const std::scoped_lock lock{mutex};
    got.push_back(event.topic + " " + std::string{event.value_json()});
    if (got.size() == 2) both.set_value();
  });
  both.get_future().get();
  EXPECT_EQ(got, (std::vector<std::string>{"news.first 1", R"(news.second "two \\ \"2\"")"}));
  server.end();
}

TEST_F(Restart, the_old_process_answers_for_a_provider_that_knows_of_no_restarts) {
  Restarted server{serve({"--drain-ms", "1000"})};
  server.first().read_error_until("Methods:");
  std::optional<Provider> provider{std::in_place, folder_.path + "/calls.sock"};
  server.restart();
  {
    Client client{folder_.socket()};
    EXPECT_EQ(provider->sum_of(client), 3);
  }
  provider.reset();
  EXPECT_EQ(server.first().wait(), 0);
  server.end();
}

// So long that a test ends before it is over, or not at all.
const std::string kDrainForever = "600000";

TEST_F(Restart, the_old_process_ends_though_a_provider_that_was_asked_to_leave_does_not_come_to_the_new_one) {
  Restarted server{serve({"--drain-ms", kDrainForever})};
  server.first().read_error_until("Methods:");
  std::optional<Stock> provider{folder_.path + "/calls.sock"};
  provider->send(R"({"jsonrpc":"2.0","method":"rpc.hello","params":{"name":"worker"},"id":1})"
                 R"({"jsonrpc":"2.0","method":"rpc.register","params":{"method":"work"},"id":2})");
  provider->line();
  EXPECT_EQ(provider->line().find("error"), std::string::npos);
  server.restart();
  EXPECT_EQ(provider->line(), R"({"jsonrpc":"2.0","method":"rpc.draining"})");
  Stock caller{folder_.path + "/calls.sock"};
  caller.send(R"({"jsonrpc":"2.0","method":"work","id":1})");  // waits for it
  provider.reset();
  EXPECT_EQ(server.first().wait(), 0);
  const std::string lost = caller.line();
  EXPECT_NE(lost.find("-32001"), std::string::npos) << lost;
  EXPECT_NE(lost.find(R"("delivered":"no")"), std::string::npos) << lost;
  caller.send(R"({"jsonrpc":"2.0","method":"work","id":2})");
  EXPECT_NE(caller.line().find("-32601"), std::string::npos);
  server.end();
}

TEST_F(Restart, a_provider_that_leaves_the_old_process_unasked_is_waited_for_by_nobody) {
  Restarted server{serve({"--drain-ms", kDrainForever})};
  server.first().read_error_until("Methods:");
  std::optional<Stock> stays{folder_.path + "/calls.sock"};
  stays->send(R"({"jsonrpc":"2.0","method":"rpc.ping","id":1})");
  stays->line();
  std::optional<Provider> provider{std::in_place, folder_.path + "/calls.sock"};
  server.restart();
  Client client{folder_.socket()};
  EXPECT_EQ(provider->sum_of(client), 3);
  provider.reset();
  Stock caller{folder_.path + "/calls.sock"};
  std::string answer;
  do {
    caller.send(R"({"jsonrpc":"2.0","method":"stock.add","params":[1,2],"id":1})");
    answer = caller.line();
    EXPECT_NE(answer.find("error"), std::string::npos) << answer;
  } while (answer.find("-32601") == std::string::npos);
  stays.reset();
  EXPECT_EQ(server.first().wait(), 0);
  server.end();
}

TEST_P(RestartEngines, nobody_who_calls_a_client_notices_ten_in_a_row) {
  const std::string engine = GetParam() == Engine::epoll ? "epoll" : "uring";
  Restarted server{serve({"--engine", engine})};
  server.first().read_error_until("Methods:");
  ClientOptions options;
  options.client_id = "worker";
  options.reconnect_min_ms = 1;
  Client worker{folder_.socket(), options};
  worker.provide("work", [](int a, int b) { return a - b; });
  worker.connect();
  Load load{{folder_.socket()}, "work"};
  load.go_on(100);
  for (int i = 0; i < 10; ++i) {
    server.restart();
    load.go_on(100);
  }
  load.end();
  server.end();
}

TEST_F(Restart, principals_are_who_they_were_and_may_do_what_they_might) {
  const std::string principals = folder_.path + "/principals.json";
  std::ofstream{principals} << R"([
      {"name": "workers", "tokens": ["w"], "provide": ["work", "stock"]},
      {"name": "callers", "tokens": ["c"], "call": ["work", "stock"]}, {"name": "others", "tokens": ["o"]}])";
  std::filesystem::permissions(principals, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  Restarted server{serve({"--principals-file", principals, "--drain-ms", "1000"})};
  server.first().read_error_until("Methods:");
  ClientOptions options;
  options.client_id = "worker";
  options.token = "w";
  Client worker{folder_.socket(), options};
  worker.provide("work", [](int a) { return a + 1; });
  worker.connect();
  Stock stock{folder_.path + "/calls.sock"};
  stock.send(R"({"jsonrpc":"2.0","method":"rpc.hello","params":{"token":"w"},"id":1})"
             R"({"jsonrpc":"2.0","method":"rpc.register","params":{"method":"stock"},"id":2})");
  stock.line();
  EXPECT_EQ(stock.line().find("error"), std::string::npos);
  const auto code_of = [&](const std::string& token, const std::string& method) {
    ClientOptions given;
    given.token = token;
    try {
      return Client{folder_.socket(), given}.call<int>(method, 1);
    } catch (const Error& error) {
      return error.code();
    }
  };
  server.restart();
  EXPECT_EQ(code_of("c", "work"), 2);
  EXPECT_EQ(code_of("o", "work"), -32601);
  EXPECT_EQ(code_of("o", "stock"), -32601);
  EXPECT_EQ(code_of("nobody", "work"), -32004);
  server.end();
}

// ---- while both serve ----

/// A client that stays with the old process, since it knows of no restarts.
class Both : public Restart {
 protected:
  Both() { server_.first().read_error_until("Methods:"); }

  /// Until `then` has become true, which others do.
  template <class Act>
  static void again_until(const std::atomic<bool>& then, const Act& act) {
    while (!then.load()) act();
  }
  /// Another process has taken over when this returns, and who connects from now on comes to that one: the old process
  /// answers `stock` only after it has stopped to accept.
  void restart(Stock& stock) {
    server_.restart();
    stock.send(R"({"jsonrpc":"2.0","method":"rpc.ping","id":0})");
    EXPECT_NE(stock.line().find(R"("id":0})"), std::string::npos);
  }
  [[nodiscard]] static std::string publish(std::string_view topic, int value) {
    return R"({"jsonrpc":"2.0","method":")" + std::string{topic} + R"(","params":[)" + std::to_string(value) + "]}";
  }

  Restarted server_{serve({"--drain-ms", "3000"})};
};

TEST_F(Both, events_reach_who_subscribes_with_the_other_process) {
  Stock stock{folder_.path + "/calls.sock"};
  stock.send(R"({"jsonrpc":"2.0","method":"rpc.subscribe","params":{"topic":"news.*"},"id":1})");
  EXPECT_EQ(stock.line(), R"({"jsonrpc":"2.0","result":true,"id":1})");
  restart(stock);
  Client client{folder_.socket()};
  client.publish("news.first", 1);
  EXPECT_EQ(stock.line(), R"({"jsonrpc":"2.0","method":"news.first","params":[1]})");
  // The old process has to hear first of who subscribes with the new one.
  std::atomic<bool> came{false};
  const Subscription subscription = client.subscribe("back.*", [&](const Event& event) {
    EXPECT_EQ(event.topic, "back.first");
    came.store(true);
  });
  again_until(came, [&] { stock.send(publish("back.first", 1)); });
  // Of its own it is told nothing, and of the other's each once.
  client.publish("news.second", 2);
  EXPECT_EQ(stock.line(), R"({"jsonrpc":"2.0","method":"news.second","params":[2]})");
  // It may subscribe anew, and unsubscribe.
  stock.send(R"({"jsonrpc":"2.0","method":"rpc.subscribe","params":{"topic":"more"},"id":2})");
  EXPECT_EQ(stock.line(), R"({"jsonrpc":"2.0","result":true,"id":2})");
  std::atomic<bool> told{false};
  std::jthread publisher{[&] { again_until(told, [&] { client.publish("more", 3); }); }};
  EXPECT_EQ(stock.line(), R"({"jsonrpc":"2.0","method":"more","params":[3]})");
  told.store(true);
  publisher.join();
}

TEST_F(Both, of_a_group_one_is_told_wherever_an_event_is_published) {
  Stock stock{folder_.path + "/calls.sock"};
  Stock second{folder_.path + "/calls.sock"};
  stock.send(R"({"jsonrpc":"2.0","method":"rpc.subscribe","params":{"topic":"jobs","group":"workers"},"id":1})"
             R"({"jsonrpc":"2.0","method":"rpc.subscribe","params":{"topic":"end"},"id":2})");
  stock.line();
  stock.line();
  second.send(R"({"jsonrpc":"2.0","method":"rpc.ping","id":1})");
  second.line();
  restart(stock);
  Client client{folder_.socket()};
  client.publish("jobs", 1);  // nobody else is in the group
  EXPECT_EQ(stock.line(), R"({"jsonrpc":"2.0","method":"jobs","params":[1]})");
  std::atomic<int> here{0};
  std::atomic<bool> ready{false};
  SubscribeOptions group;
  group.group = "workers";
  const Subscription jobs = client.subscribe("jobs", group, [&](const Event&) { ++here; });
  const Subscription other = client.subscribe("ready", [&](const Event&) { ready.store(true); });
  // The old process knows of both once it knows of the second.
  again_until(ready, [&] { second.send(publish("ready", 0)); });
  Client publisher{folder_.socket()};
  constexpr int kEvents = 50;
  for (int i = 0; i < kEvents; ++i) publisher.publish("jobs", 2);
  publisher.publish("end", 0);
  EXPECT_EQ(stock.line(), R"({"jsonrpc":"2.0","method":"end","params":[0]})");
  for (int i = 0; i < kEvents; ++i) {
    second.send(publish("jobs", 3));
    EXPECT_EQ(stock.line(), R"({"jsonrpc":"2.0","method":"jobs","params":[3]})");
  }
  ready.store(false);
  again_until(ready, [&] { second.send(publish("ready", 0)); });
  EXPECT_EQ(here.load(), kEvents);
}

TEST_F(Both, an_event_right_behind_a_change_of_a_group_is_told_as_the_group_is_then) {
  Stock stock{folder_.path + "/calls.sock"};
  Stock second{folder_.path + "/calls.sock"};
  const std::string join =
      R"({"jsonrpc":"2.0","method":"rpc.subscribe","params":{"topic":"jobs","group":"workers"},"id":1})";
  stock.send(join);
  stock.line();
  second.send(R"({"jsonrpc":"2.0","method":"rpc.ping","id":1})");
  second.line();
  restart(stock);
  Stock other{folder_.path + "/calls.sock"};
  other.send(join + R"({"jsonrpc":"2.0","method":"rpc.subscribe","params":{"topic":"ready"},"id":2})");
  other.line();
  other.line();
  {
    std::atomic<bool> ready{false};
    const std::jthread publisher{[&] { again_until(ready, [&] { second.send(publish("ready", 0)); }); }};
    EXPECT_EQ(other.line(), publish("ready", 0));
    ready.store(true);
  }
  other.send(R"({"jsonrpc":"2.0","method":"rpc.unsubscribe","params":{"topic":"jobs"},"id":3})" + publish("jobs", 9));
  EXPECT_EQ(stock.line(), publish("jobs", 9));
}

TEST_F(Both, what_is_retained_with_one_is_known_to_the_other) {
  Stock stock{folder_.path + "/calls.sock"};
  stock.send(R"({"jsonrpc":"2.0","method":"rpc.ping","id":1})");
  stock.line();
  restart(stock);
  const std::string publish = R"({"jsonrpc":"2.0","method":"rpc.publish","params":{"topic":"state",)";
  stock.send(publish + R"("params":[7],"retain":true},"id":2})");
  stock.line();
  Client client{folder_.socket()};
  std::atomic<bool> came{false};
  SubscribeOptions last;
  last.last = true;
  again_until(came, [&] {
    const Subscription state = client.subscribe("state", last, [&](const Event& event) {
      EXPECT_EQ(event.value_json(), "7");
      came.store(true);
    });
    static_cast<void>(client.call<int>("subtract", 5, 3));  // the answer comes behind what is retained
  });
  client.publish("state", 8, {.retain = true});
  const auto got = [&] {
    stock.send(R"({"jsonrpc":"2.0","method":"rpc.subscribe","params":{"topic":"state","last":true},"id":3})");
    EXPECT_NE(stock.line().find(R"("result":true)"), std::string::npos);
    const std::string event = stock.line();
    stock.send(R"({"jsonrpc":"2.0","method":"rpc.unsubscribe","params":{"topic":"state"},"id":4})");
    stock.line();
    return event;
  };
  while (got() != R"({"jsonrpc":"2.0","method":"state","params":[8]})") {
  }
}

TEST_F(Both, who_stays_with_the_old_process_calls_who_provides_with_the_new_one) {
  Stock stock{folder_.path + "/calls.sock"};
  stock.send(R"({"jsonrpc":"2.0","method":"rpc.ping","id":1})");
  stock.line();
  restart(stock);
  const auto call = [&](const std::string& more = "") {
    stock.send(R"({"jsonrpc":"2.0","method":"work","params":[1],"id":2)" + more + "}");
    return stock.line();
  };
  EXPECT_NE(call().find("-32009"), std::string::npos);  // nobody provides it anywhere
  const std::string result = R"({"jsonrpc":"2.0","result":2,"id":2})";
  std::optional<std::promise<int>> notified{std::in_place};
  {
    ClientOptions options;
    options.client_id = "worker";
    Client worker{folder_.socket(), options};
    worker.provide("work", [&](int a) {
      if (a > 1) notified->set_value(a);
      return a + 1;
    });
    worker.connect();
    while (call() != result) {
    }
    EXPECT_EQ(call(R"(,"to":"worker")"), result);
    const std::string other = call(R"(,"to":"somebody")");
    EXPECT_NE(other.find(R"("code":-32001)"), std::string::npos) << other;
    EXPECT_NE(other.find(R"("delivered":"no")"), std::string::npos) << other;
    stock.send(R"({"jsonrpc":"2.0","method":"work","params":[7]})");
    EXPECT_EQ(notified->get_future().get(), 7);
    EXPECT_EQ(call(), result);
  }
  while (call().find("-32009") == std::string::npos) {  // as soon as the old process has heard that nobody does
  }
}

TEST_F(Both, who_provides_with_the_old_process_is_asked_there_and_who_has_come_to_the_new_one_after_that) {
  Stock stock{folder_.path + "/calls.sock"};
  std::optional<Provider> provider{std::in_place, folder_.path + "/calls.sock"};
  stock.send(R"({"jsonrpc":"2.0","method":"rpc.ping","id":1})");
  stock.line();
  restart(stock);
  Client other{folder_.socket()};
  other.provide("stock.add", [](int a, int b) { return 10 * (a + b); });
  other.connect();
  Client client{folder_.socket()};
  EXPECT_EQ(client.call<int>("stock.add", 1, 2), 30);
  const std::string call = R"({"jsonrpc":"2.0","method":"stock.add","params":[1,2],"id":2})";
  stock.send(call);
  provider->answer();
  EXPECT_EQ(stock.line(), R"({"jsonrpc":"2.0","result":3,"id":2})");
  provider.reset();
  std::string answer;
  do {
    stock.send(call);
  } while ((answer = stock.line()).find("error") != std::string::npos);
  EXPECT_EQ(answer, R"({"jsonrpc":"2.0","result":30,"id":2})");
}

TEST_F(Restart, nobody_who_calls_a_client_by_its_name_notices_ten_in_a_row) {
  Restarted server{serve()};
  server.first().read_error_until("Methods:");
  ClientOptions options;
  options.client_id = "worker";
  options.reconnect_min_ms = 1;
  Client worker{folder_.socket(), options};
  worker.provide("work", [](int a, int b) { return a - b; });
  worker.connect();
  Load load{{folder_.socket()}, "work", "worker"};
  load.go_on(100);
  for (int i = 0; i < 10; ++i) {
    server.restart();
    load.go_on(100);
  }
  load.end();
  server.end();
}

// ---- what fails ----

TEST_F(Restart, one_that_does_not_come_up_leaves_the_old_process_as_it_was) {
  const std::string config = folder_.path + "/wirecall.toml";
  std::ofstream{config} << "drain_ms = 1000\n";
  Restarted server{serve({"-c", config})};
  server.first().read_error_until("Methods:");
  std::ofstream{config} << "drain_mss = 1000\n";
  kill(server.pid(), SIGUSR2);
  const std::string log = server.first().read_error_until("it has ended with status 2");
  EXPECT_NE(log.find("there is no option drain_mss"), std::string::npos) << log;
  EXPECT_NE(log.find("no other process takes over, and this one goes on"), std::string::npos) << log;
  EXPECT_TRUE(is_served());
  std::ofstream{config} << "drain_ms = 500\n";
  server.restart();
  EXPECT_TRUE(is_served());
  server.end();
}

TEST_F(Restart, one_that_is_started_by_hand_takes_over_with_replace) {
  Process old{serve()};
  old.read_error_until("Methods:");
  EXPECT_EQ(run(serve()).status, 3);  // without it the endpoints are taken
  Process other{serve({"--replace"})};
  other.read_error_until("Methods:");
  EXPECT_EQ(old.wait(), 0);
  EXPECT_TRUE(is_served());
  Process third{serve({"--replace"})};
  third.read_error_until("Methods:");
  EXPECT_EQ(other.wait(), 0);
  EXPECT_TRUE(is_served());
  third.signal(SIGTERM);
  EXPECT_EQ(third.wait(), 0);
  for (const std::string& file : {path(), folder_.path + "/calls.sock"}) EXPECT_FALSE(std::filesystem::exists(file));
}

TEST_F(Restart, with_replace_and_nobody_there_a_server_just_serves) {
  Process server{serve({"--replace"})};
  server.read_error_until("Methods:");
  EXPECT_TRUE(is_served());
}

TEST_F(Restart, the_old_process_goes_on_wherever_the_other_dies) {
  Process server{serve()};
  server.read_error_until("Methods:");
  using Step = void (*)(Rival&);
  const std::vector<Step> steps{[](Rival& rival) { rival.hello(); }, [](Rival& rival) { rival.sockets(); },
                                [](Rival& rival) { rival.ready(); }, [](Rival& rival) { rival.state(); }};
  for (std::size_t count = 0; count <= steps.size(); ++count) {
    {
      Rival rival{path()};
      for (std::size_t i = 0; i < count; ++i) steps[i](rival);
    }
    server.read_error_until("no other process takes over", static_cast<int>(count) + 1);
    EXPECT_TRUE(is_served()) << count;
  }
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0);
}

TEST_F(Restart, one_that_says_nothing_more_is_given_up_in_time) {
  Process server{serve({"--restart-ms", "50"})};
  server.read_error_until("Methods:");
  Rival before_ready{path()};
  before_ready.hello();
  EXPECT_EQ(before_ready.sockets().uris, std::vector{folder_.socket()});
  EXPECT_EQ(before_ready.descriptors(), 2U);  // the endpoint's, and that of restarts
  EXPECT_TRUE(before_ready.is_refused());
  Rival at_last{path()};
  at_last.hello();
  at_last.sockets();
  at_last.ready();
  at_last.state();
  EXPECT_TRUE(at_last.is_refused());
  const std::string log = server.read_error_until("did not answer in time", 2);
  EXPECT_NE(log.find("did not answer in time"), std::string::npos);
  EXPECT_TRUE(is_served());
}

TEST_F(Restart, what_is_no_message_is_refused) {
  Process server{serve()};
  server.read_error_until("Methods:");
  // The head of a message: "WCRS", then so many descriptors and so many bytes of text.
  const auto head = [](std::uint32_t descriptors, std::uint64_t bytes) {
    const std::uint32_t magic = 0x57435253;
    std::string all(16, '\0');
    std::memcpy(all.data(), &magic, sizeof magic);
    std::memcpy(all.data() + 4, &descriptors, sizeof descriptors);
    std::memcpy(all.data() + 8, &bytes, sizeof bytes);
    return all;
  };
  const auto message = [&](const std::string& text) { return head(0, text.size()) + text; };
  const std::string hello = to_json(RestartHello{.restart = kRestartVersion, .pid = getpid()});
  const std::vector<std::string> wrong{
      std::string(4096, 'x'),                  // no head
      head(5000, 0),                           // more descriptors than there may be
      head(1, hello.size()) + "d" + hello,     // with a descriptor
      head(0, hello.size() + 1) + hello,       // cut off
      message("[]"),                           // another text
      message(std::string(200'000, '[')),      // one that nests too deep
      message(R"({"restart":1,"pid":1e99})"),  // out of range
      message(R"({"restart":99,"pid":123})"),  // of another version
  };
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    const runtime::Descriptor socket = connect_to(path());
    ASSERT_EQ(send(socket.get(), wrong[i].data(), wrong[i].size(), 0), static_cast<ssize_t>(wrong[i].size()));
    ::shutdown(socket.get(), SHUT_WR);
    server.read_error_until("no other process takes over, and this one goes on", static_cast<int>(i) + 1);
    EXPECT_TRUE(is_served()) << i;
  }
}

TEST_F(Restart, of_another_process_no_descriptor_is_kept) {
  Process server{serve()};
  server.read_error_until("Methods:");
  const runtime::Descriptor socket = connect_to(path());
  // With each byte of a head come as many as one message may have.
  const std::string head = std::string{"SRCW"} + std::string(12, '\0');
  std::array<int, 250> all;
  all.fill(socket.get());
  std::size_t sent = 0;
  for (char byte : head) {
    iovec part{.iov_base = &byte, .iov_len = 1};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof all)> space{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = space.data();
    message.msg_controllen = space.size();
    cmsghdr* const control = CMSG_FIRSTHDR(&message);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(sizeof all);
    std::memcpy(CMSG_DATA(control), all.data(), sizeof all);
    if (sendmsg(socket.get(), &message, MSG_NOSIGNAL) == 1) ++sent;
  }
  EXPECT_GT(sent, 0U);
  const std::string log = server.read_error_until("no other process takes over, and this one goes on");
  EXPECT_NE(server.read_error_line(log.rfind("no other process")).find("is not understood"), std::string::npos) << log;
  EXPECT_TRUE(is_served());
}

TEST_F(Restart, without_descriptors_another_process_waits_until_there_are_some) {
  Process server{serve()};
  server.read_error_until("Methods:");
  rlimit before{};
  ASSERT_EQ(prlimit(server.id(), RLIMIT_NOFILE, nullptr, &before), 0);
  const rlimit few{.rlim_cur = 8, .rlim_max = before.rlim_max};  // it has more
  ASSERT_EQ(prlimit(server.id(), RLIMIT_NOFILE, &few, nullptr), 0) << std::strerror(errno);
  Rival rival{path()};
  const std::string log = server.read_error_until("no other process takes over, and this one goes on");
  EXPECT_NE(server.read_error_line(log.rfind("no other process")).find("ulimit -n"), std::string::npos) << log;
  // It does not look for it all the time: from the first to the third attempt it hardly works.
  const auto worked = [&server] {
    std::string stat;
    std::getline(std::ifstream{"/proc/" + std::to_string(server.id()) + "/stat"}, stat);
    std::istringstream words{stat.substr(stat.rfind(')') + 2)};
    std::string word;
    for (int i = 0; i < 11; ++i) words >> word;
    long user = 0;
    long system = 0;
    words >> user >> system;
    return user + system;
  };
  const long began = worked();
  server.read_error_until("no other process takes over, and this one goes on", 3);
  EXPECT_LT(worked() - began, sysconf(_SC_CLK_TCK));
  ASSERT_EQ(prlimit(server.id(), RLIMIT_NOFILE, &before, nullptr), 0);
  rival.hello();
  EXPECT_EQ(rival.sockets().uris, std::vector{folder_.socket()});
  EXPECT_TRUE(is_served());
}

TEST_F(Restart, a_process_that_has_been_replaced_says_who_has_taken_over) {
  Restarted server{serve({"--drain-ms", kDrainForever})};
  server.first().read_error_until("Methods:");
  std::optional<Stock> stays{folder_.path + "/calls.sock"};
  stays->send(R"({"jsonrpc":"2.0","method":"rpc.ping","id":1})");
  stays->line();
  server.restart();
  server.first().signal(SIGUSR2);
  const std::string word = "this process has been replaced already";
  const std::string log = server.first().read_error_until(word);
  const std::string line = server.first().read_error_line(log.rfind(word));
  EXPECT_NE(line.find("pid=" + std::to_string(server.pid())), std::string::npos) << line;
  stays.reset();
  EXPECT_EQ(server.first().wait(), 0);
  server.end();
}

TEST_F(Restart, a_message_that_says_it_is_too_large_is_refused_before_it_comes) {
  Process server{serve()};
  server.read_error_until("Methods:");
  const runtime::Descriptor socket = connect_to(path());
  struct {
    std::uint32_t magic = 0x57435253;
    std::uint32_t descriptors = 0;
    std::uint64_t bytes = kRestartBytesMax + 1;
  } head;
  ASSERT_EQ(send(socket.get(), &head, sizeof head, 0), static_cast<ssize_t>(sizeof head));
  const std::string log = server.read_error_until("no other process takes over, and this one goes on");
  const std::string line = server.read_error_line(log.rfind("no other process takes over"));
  EXPECT_NE(line.find("is not understood: is it wirecall?"), std::string::npos) << line;
  EXPECT_TRUE(is_served());
}

// An attempt that fails leaves nothing open.
std::size_t descriptors_of(pid_t pid) {
  const std::filesystem::directory_iterator all{"/proc/" + std::to_string(pid) + "/fd"};
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

/// A program that stands where another one stood when the server was started.
class OtherProgram : public Restart {
 protected:
  OtherProgram() { std::filesystem::create_symlink(WIRECALL_TOOL_PATH, program_); }
  void replace_by(const std::string& script) const {
    std::filesystem::remove(program_);
    if (script.empty()) return;
    std::ofstream{program_} << "#!/bin/sh\n" << script << "\n";
    std::filesystem::permissions(program_, std::filesystem::perms::owner_all);
  }

  const std::string program_ = folder_.path + "/program";
};

TEST_F(OtherProgram, one_that_is_not_there_or_dies_or_hangs_leaves_the_old_process_as_it_was_and_nothing_open) {
  Process server{serve({"--restart-ms", "300"}), {}, {}, Process::Input::ends, program_};
  server.read_error_until("Methods:");
  Stock client{folder_.path + "/calls.sock"};  // the only one, so that the number of connections is the same
  const auto is_served = [&client] {
    client.send(R"({"jsonrpc":"2.0","method":"subtract","params":[5,3],"id":1})");
    return client.line() == R"({"jsonrpc":"2.0","result":2,"id":1})";
  };
  EXPECT_TRUE(is_served());
  struct Case {
    std::string script;
    std::string reason;
  };
  const std::vector<Case> cases{{"", "cannot be started: No such file or directory"},
                                {"kill -SEGV $$", "signal 11 has ended it"},
                                {"exit 3", "it has ended with status 3"},
                                {"exec sleep 1000", "did not answer in time; it was killed"},
                                {"", "cannot be started: No such file or directory"}};
  std::size_t open = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    replace_by(cases[i].script);
    server.signal(SIGUSR2);
    const std::string log =
        server.read_error_until("no other process takes over, and this one goes on", static_cast<int>(i) + 1);
    const std::string line = server.read_error_line(log.rfind("no other process takes over"));
    EXPECT_NE(line.find(cases[i].reason), std::string::npos) << line;
    EXPECT_TRUE(is_served()) << i;
    if (i == 0) open = descriptors_of(server.id());
  }
  EXPECT_EQ(descriptors_of(server.id()), open);
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0);
}

TEST_F(OtherProgram, one_that_is_sent_sigusr2_while_it_starts_takes_over_all_the_same) {
  Process server{serve({"--restart-ms", "20000"}), {}, {}, Process::Input::ends, program_};
  server.read_error_until("Methods:");
  replace_by("kill -USR2 $$\nexec " WIRECALL_TOOL_PATH " \"$@\"");
  server.signal(SIGUSR2);
  server.read_error_until("this process has taken over");
  // It has been told as well, and starts another one.
  const std::string log = server.read_error_until("this process has taken over", 2);
  EXPECT_EQ(log.find("this one goes on"), std::string::npos) << log;
  EXPECT_TRUE(is_served());
  const std::size_t at = log.rfind("another process is started to take over");
  const std::string line = server.read_error_line(at);
  pid_t last = 0;
  const std::size_t number = line.find("pid=");
  ASSERT_NE(number, std::string::npos) << line;
  std::from_chars(line.data() + number + 4, line.data() + line.size(), last);
  kill(last, SIGKILL);
}

TEST_F(Restart, no_descriptor_is_left_of_one_restart_in_the_next_process) {
  Restarted server{serve()};
  server.first().read_error_until("Methods:");
  const std::size_t open = descriptors_of(server.pid());
  for (int i = 0; i < 3; ++i) server.restart();
  EXPECT_EQ(server.first().wait(), 0);
  // The connection to its predecessor goes once that has ended.
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{30};
  while (descriptors_of(server.pid()) != open && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  EXPECT_EQ(descriptors_of(server.pid()), open);
  server.end();
}

/// A server that is taken over from, step by step, in the process of the test.
class OldServer {
 public:
  OldServer(const std::string& path, const std::string& endpoint)
      : restarts_(transport::listen_on_path(Endpoint{"unix://" + path}, path)),
        served_(transport::listen_on(Endpoint{endpoint})) {
    ::fcntl(restarts_.descriptor, F_SETFL, ::fcntl(restarts_.descriptor, F_GETFL) & ~O_NONBLOCK);
  }
  OldServer(OldServer&&) = delete;
  ~OldServer() {
    ::close(restarts_.descriptor);
    ::close(served_.descriptor);
  }

  /// Another process has come up when this returns, and waits for the state of this one, of that id.
  void await_ready(pid_t pid = getpid()) {
    channel_.emplace(runtime::Descriptor{::accept4(restarts_.descriptor, nullptr, nullptr, SOCK_CLOEXEC)});
    static_cast<void>(channel_->receive(kTime, kRestartBytesMax));
    const std::array<runtime::Descriptor, 1> all{runtime::Descriptor{::dup(served_.descriptor)}};
    channel_->send(
        to_json(RestartSockets{
            .restart = kRestartVersion, .pid = pid, .uris = {served_.endpoint.uri()}, .path = {}, .error = {}}),
        kTime, all);
    const auto ready = from_json<RestartReady>(channel_->receive(kTime, kRestartBytesMax).text);
    EXPECT_TRUE(ready && ready->error.empty());
  }
  void hang_up() { channel_.reset(); }
  void go() { channel_->send(to_json(RestartGo{.go = true}), kTime); }
  RestartPrepared hand_over(std::string_view state = kState) {
    channel_->send(state, kTime);
    return *from_json<RestartPrepared>(channel_->receive(kTime, kRestartBytesMax).text);
  }
  /// What the first that waits to be accepted has sent; empty where nobody waits.
  [[nodiscard]] std::string accepted() const {
    const runtime::Descriptor socket{::accept4(served_.descriptor, nullptr, nullptr, SOCK_CLOEXEC)};
    std::array<char, 256> text;
    const ssize_t bytes = recv(socket.get(), text.data(), text.size(), 0);
    return {text.data(), bytes > 0 ? static_cast<std::size_t>(bytes) : 0};
  }

 private:
  static constexpr std::chrono::milliseconds kTime{30000};
  static constexpr std::string_view kState =
      R"({"session_key":[1,2,3,4],"session_last":1,"kicked":[],"retained":[],"methods":[],"topics":[]})";

  transport::BoundSocket restarts_;
  transport::BoundSocket served_;
  std::optional<RestartChannel> channel_;
};

TEST_F(Restart, one_that_is_told_to_stop_before_it_has_taken_over_does_not) {
  make_runtime_folder();
  OldServer old{path(), folder_.socket()};
  Process other{serve({"--replace"})};
  old.await_ready();
  other.signal(SIGTERM);
  const RestartPrepared said = old.hand_over();
  EXPECT_FALSE(said.prepared);
  EXPECT_NE(said.error.find("has been told to stop"), std::string::npos) << said.error;
  EXPECT_EQ(other.wait(), 3);
}

TEST_F(Restart, one_that_takes_over_serves_in_place_of_an_old_process_that_nobody_finds_any_more) {
  const pid_t gone = fork();
  if (gone == 0) _exit(0);
  waitpid(gone, nullptr, 0);
  make_runtime_folder();
  OldServer old{path(), folder_.socket()};
  Process other{serve({"--replace"})};
  old.await_ready(gone);
  old.hang_up();
  const std::string log = other.read_error_until("Methods:");
  ASSERT_NE(log.find("this process serves in place of one that has died"), std::string::npos) << log;
  EXPECT_TRUE(is_served());
}

/// A process may open so many descriptors more while this lives.
class Spare {
 public:
  Spare(pid_t pid, rlim_t descriptors) : pid_(pid) {
    const std::filesystem::path all{"/proc/" + std::to_string(pid) + "/fd"};
    rlim_t limit = 0;
    for (rlim_t left = descriptors + 1; left != 0; ++limit)
      left -= std::filesystem::is_symlink(all / std::to_string(limit)) ? 0 : 1;
    prlimit(pid, RLIMIT_NOFILE, nullptr, &before_);
    const rlimit now{.rlim_cur = limit - 1, .rlim_max = before_.rlim_max};
    EXPECT_EQ(prlimit(pid, RLIMIT_NOFILE, &now, nullptr), 0);
  }
  Spare(Spare&&) = delete;
  ~Spare() { prlimit(pid_, RLIMIT_NOFILE, &before_, nullptr); }

 private:
  pid_t pid_;
  rlimit before_{};
};

TEST_F(Restart, one_that_may_open_no_descriptors_gives_up_in_time_or_serves) {
  make_runtime_folder();
  int taken_over = 0;
  for (rlim_t spare = 0; spare < 6; ++spare) {
    OldServer old{path(), folder_.socket()};
    Process other{serve({"--replace"})};
    old.await_ready();
    std::optional<Spare> few{std::in_place, other.id(), spare};
    if (!old.hand_over().prepared) {
      EXPECT_EQ(other.wait(), 3) << spare;
      continue;
    }
    ++taken_over;
    old.go();
    const std::string log = other.read_error_until("Methods:");
    ASSERT_NE(log.find("Methods:"), std::string::npos) << spare << log;
    few.reset();
    EXPECT_TRUE(is_served()) << spare;
    other.signal(SIGTERM);
    EXPECT_EQ(other.wait(), 0) << spare;
  }
  EXPECT_GT(taken_over, 0);
}

TEST_F(Restart, what_is_said_to_who_hears_no_more_fails_and_what_was_said_before_holds) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  RestartChannel hears{runtime::Descriptor{ends[0]}};
  RestartChannel says{runtime::Descriptor{ends[1]}};
  constexpr std::chrono::milliseconds kTime{30000};
  says.send("go", kTime);
  hears.end_input();
  EXPECT_THROW(says.send("go", kTime), RestartError);
  EXPECT_TRUE(hears.has_input());
  EXPECT_EQ(hears.receive(kTime, kRestartBytesMax).text, "go");
  EXPECT_FALSE(hears.has_input());
}

TEST_P(RestartEngines, who_waits_to_be_accepted_is_the_old_process_s_where_the_other_gives_up) {
  make_runtime_folder();
  OldServer old{path(), folder_.socket()};
  Process other{serve({"--replace", "--engine", GetParam() == Engine::epoll ? "epoll" : "uring"})};
  old.await_ready();
  const Stock client{folder_.path + "/calls.sock"};
  client.send("a call");
  EXPECT_FALSE(old.hand_over("no state").prepared);
  EXPECT_EQ(other.wait(), 2);
  EXPECT_EQ(old.accepted(), "a call");
}

TEST_F(Restart, with_replace_no_folder_is_looked_into_that_is_not_this_user_s_alone) {
  make_runtime_folder();
  Process server{serve()};
  server.read_error_until("Methods:");
  std::filesystem::permissions(folder_.path + "/wirecall", std::filesystem::perms::all);
  const Ended ended = run(serve({"--replace"}));
  EXPECT_EQ(ended.status, 3);
  EXPECT_NE(ended.error.find("is not a folder of this user's alone; remove it, or chmod 700"), std::string::npos)
      << ended.error;
  EXPECT_TRUE(is_served());
}

// ---- while both serve, and the connection between them ----

TEST_F(Restart, the_connection_between_both_is_not_ended_for_being_idle) {
  Restarted server{serve({"--drain-ms", "2000", "--keepalive-timeout-ms", "100"})};
  server.first().read_error_until("Methods:");
  std::optional<Provider> provider{std::in_place, folder_.path + "/calls.sock"};
  server.restart();
  Client client{folder_.socket()};
  client.call<void>("sleep", 500);
  EXPECT_EQ(provider->sum_of(client), 3);
  provider.reset();
  EXPECT_EQ(server.first().wait(), 0);
  server.end();
}

TEST_F(Restart, the_connection_between_both_is_not_ended_by_other_principals) {
  const std::string principals = folder_.path + "/principals.json";
  const auto write = [&](const std::string& more) {
    std::ofstream{principals} << R"([{"name": "readers", "tokens": ["r"], "subscribe": ["news"]})" << more << "]";
    std::filesystem::permissions(principals, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  };
  write("");
  Restarted server{serve({"--principals-file", principals, "--drain-ms", "20000"})};
  server.first().read_error_until("Methods:");
  std::optional<Stock> reader{folder_.path + "/calls.sock"};
  reader->send(R"({"jsonrpc":"2.0","method":"rpc.hello","params":{"token":"r"},"id":1})"
               R"({"jsonrpc":"2.0","method":"rpc.subscribe","params":{"topic":"news"},"id":2})");
  reader->line();
  EXPECT_EQ(reader->line(), R"({"jsonrpc":"2.0","result":true,"id":2})");
  server.restart();
  EXPECT_EQ(reader->line(), R"({"jsonrpc":"2.0","method":"rpc.draining"})");
  write(R"(, {"name": "writers", "tokens": ["w"], "publish": ["news"]})");
  int reloads = 0;
  for (const pid_t one : {server.pid(), server.first().id()}) {
    kill(one, SIGHUP);
    server.first().read_error_until("the configuration is in force", ++reloads);
  }
  ClientOptions options;
  options.token = "w";
  Client client{folder_.socket(), options};
  client.publish("news", 1);
  EXPECT_EQ(reader->line(), R"({"jsonrpc":"2.0","method":"news","params":[1]})");
  reader.reset();
  EXPECT_EQ(server.first().wait(), 0);
  server.end();
}

// ---- what the old process does where the other goes on without it, and the other way round ----

/// A server that is taken over from, as far as the test has it do so, over which a real one comes.
class Victim {
 public:
  /// In a process of its own, which `dies` after so many of its messages, or goes on but gives up.
  Victim(const std::string& path, const std::string& endpoint, int messages, bool dies) {
    transport::BoundSocket restarts = transport::listen_on_path(Endpoint{"unix://" + path}, path);
    transport::BoundSocket served = transport::listen_on(Endpoint{endpoint});
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    pid_ = fork();
    if (pid_ == 0) {
      alarm(kSecondsMax);
      try {
        be_replaced(restarts.descriptor, served.descriptor, endpoint, messages);
      } catch (const std::exception&) {
        _exit(1);
      }
      if (dies) _exit(0);
      channel_.reset();
      char byte = 0;
      static_cast<void>(::read(ends[0], &byte, 1));  // until the test ends
      _exit(0);
    }
    ::close(ends[0]);
    wake_ = runtime::Descriptor{ends[1]};
    ::close(restarts.descriptor);
    ::close(served.descriptor);
    restarts.file.keep();
    served.file.keep();
  }
  Victim(Victim&&) = delete;
  ~Victim() {
    kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

 private:
  static constexpr std::chrono::milliseconds kTime{30000};

  // In the child.
  void be_replaced(int restarts, int served, const std::string& endpoint, int messages) {
    ::fcntl(restarts, F_SETFL, ::fcntl(restarts, F_GETFL) & ~O_NONBLOCK);
    channel_.emplace(runtime::Descriptor{::accept4(restarts, nullptr, nullptr, SOCK_CLOEXEC)});
    static_cast<void>(channel_->receive(kTime, kRestartStateBytesMax));
    if (messages > 0) {
      const std::array<runtime::Descriptor, 1> all{runtime::Descriptor{::dup(served)}};
      channel_->send(to_json(RestartSockets{
                         .restart = kRestartVersion, .pid = getpid(), .uris = {endpoint}, .path = {}, .error = {}}),
                     kTime, all);
    }
    if (messages > 1) {
      static_cast<void>(channel_->receive(kTime, kRestartStateBytesMax));
      channel_->send(R"({"session_key":[1,2,3,4],"session_last":1,"kicked":[],"retained":[],"methods":[],"topics":[]})",
                     kTime);
    }
    if (messages > 2) static_cast<void>(channel_->receive(kTime, kRestartStateBytesMax));
  }

  std::optional<RestartChannel> channel_;
  runtime::Descriptor wake_;
  pid_t pid_;
};

TEST_F(Restart, one_that_takes_over_serves_in_place_of_an_old_process_that_dies_meanwhile) {
  for (const int messages : {1, 2, 3}) {
    make_runtime_folder();
    const Victim victim{path(), folder_.socket(), messages, true};
    Process other{serve({"--replace"})};
    other.read_error_until("Methods:");
    EXPECT_TRUE(is_served()) << messages;
    other.signal(SIGTERM);
    EXPECT_EQ(other.wait(), 0);
    std::filesystem::remove(path());
    std::filesystem::remove(folder_.path + "/calls.sock");
  }
}

TEST_F(Restart, and_ends_where_the_old_process_goes_on) {
  for (const int messages : {0, 1, 2, 3}) {
    make_runtime_folder();
    const Victim victim{path(), folder_.socket(), messages, false};
    Process other{serve({"--replace"})};
    const std::string log = other.rest_of_error();
    EXPECT_EQ(other.wait(), 3) << messages;
    EXPECT_NE(log.find("has given up"), std::string::npos) << log;
    EXPECT_TRUE(std::filesystem::exists(folder_.path + "/calls.sock")) << messages;
    std::filesystem::remove(path());
    std::filesystem::remove(folder_.path + "/calls.sock");
  }
}

TEST_F(Restart, what_stands_where_its_socket_would_be_is_left_alone_and_the_server_serves) {
  make_runtime_folder();
  std::ofstream{folder_.path + "/precious"} << "kept";
  std::filesystem::create_symlink(folder_.path + "/precious", path());
  {
    Process server{serve()};
    const std::string log = server.read_error_until("Methods:");
    EXPECT_NE(log.find("no process can take over by --replace"), std::string::npos) << log;
    EXPECT_TRUE(is_served());
    server.signal(SIGTERM);
    EXPECT_EQ(server.wait(), 0);
  }
  EXPECT_TRUE(std::filesystem::is_symlink(path()));
  EXPECT_EQ(std::filesystem::file_size(folder_.path + "/precious"), 4U);
  // Nor is a folder used that others may write in.
  std::filesystem::remove(path());
  std::filesystem::permissions(folder_.path + "/wirecall", std::filesystem::perms::all);
  Process server{serve()};
  const std::string log = server.read_error_until("Methods:");
  EXPECT_NE(log.find("is not a folder of this user's alone"), std::string::npos) << log;
  EXPECT_FALSE(std::filesystem::exists(path()));
  EXPECT_TRUE(is_served());
}

TEST_F(Restart, sigterm_ends_a_server_that_waits_for_another_process) {
  Process server{serve()};
  server.read_error_until("Methods:");
  Rival rival{path()};
  rival.hello();
  rival.sockets();
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0);
}

TEST_F(Restart, two_signals_at_once_start_one_process_after_the_other_at_most) {
  Restarted server{serve()};
  server.first().read_error_until("Methods:");
  kill(server.pid(), SIGUSR2);
  server.restart();
  EXPECT_TRUE(is_served());
  EXPECT_EQ(server.first().wait(), 0);
  EXPECT_TRUE(is_served());
  server.end();
}

TEST_F(Restart, nobody_else_gets_the_sockets) {
  Process server{serve()};
  server.read_error_until("Methods:");
  using std::filesystem::perms;
  const std::filesystem::path file = path();
  EXPECT_EQ(std::filesystem::status(file.parent_path()).permissions(), perms::owner_all);
  EXPECT_EQ(std::filesystem::status(file).permissions(), perms::owner_read | perms::owner_write);
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  // As if the permissions were wrong.
  for (const std::filesystem::path& open : {std::filesystem::path{folder_.path}, file.parent_path(), file})
    std::filesystem::permissions(open, perms::all);
  constexpr uid_t kNobody = 65534;
  const pid_t stranger = fork();
  if (stranger == 0) {
    // By a relative path: the folders above may be root's alone.
    if (chdir(file.parent_path().c_str()) != 0 || setuid(kNobody) != 0) _exit(2);
    const runtime::Descriptor socket = connect_to(file.filename());
    char byte = 0;
    _exit(recv(socket.get(), &byte, 1, 0) == 0 ? 0 : 1);
  }
  int status = -1;
  waitpid(stranger, &status, 0);
  EXPECT_EQ(status, 0);
  server.read_error_until("the other process is another user's");
  EXPECT_TRUE(is_served());
}

TEST_F(Restart, a_server_by_standard_input_and_output_is_not_replaced) {
  Process server{
      {"serve", "--demo", "--listen", "stdio:", "--listen", folder_.socket()}, {}, {}, Process::Input::goes_on};
  server.read_error_until("Methods:");
  server.signal(SIGUSR2);
  const std::string log = server.read_error_until("this one goes on");
  EXPECT_NE(log.find("is this process's alone"), std::string::npos) << log;
  EXPECT_TRUE(is_served());
}

}  // namespace
}  // namespace wirecall::cli
