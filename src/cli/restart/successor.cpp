// See successor.hpp.
#include "cli/restart/successor.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/config/service_manager.hpp"
#include "cli/restart/restart_protocol.hpp"
#include "runtime/system.hpp"
#include "transport/setup.hpp"
#include "transport/user_folder.hpp"

extern char** environ;

namespace wirecall::cli {

using runtime::Descriptor;
using std::chrono::seconds;

// How long the loops have to give their sockets, and to come to the moment of the takeover.
constexpr seconds kLoopTime{5};
// How long a process that has given up has to end by itself, so that its exit status can be told.
constexpr std::chrono::milliseconds kEndTime{1000};
constexpr std::chrono::milliseconds kEndPoll{5};
// How long another process waits that cannot be met for want of descriptors or memory, before it is tried again.
constexpr int kShortagePause = 1000;  // ms

static sigset_t user_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  return set;
}

void block_sigusr2() {
  const sigset_t set = user_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

// A process that this one has started. Ends with this object, unless it is let go.
struct Successor::Started {
  explicit Started(pid_t id) noexcept : pid(id) {}
  Started(Started&&) = delete;
  ~Started() { static_cast<void>(end()); }

  // How it has ended, or has been ended; empty for one that was let go.
  [[nodiscard]] std::string end() {
    if (pid < 0) return {};
    int status = 0;
    pid_t ended = 0;
    const auto until = std::chrono::steady_clock::now() + kEndTime;
    while ((ended = ::waitpid(pid, &status, WNOHANG)) == 0 && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(kEndPoll);
    if (ended == 0) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, &status, 0);
    }
    pid = -1;
    if (ended == 0) return "it was killed";
    if (WIFEXITED(status)) return "it has ended with status " + std::to_string(WEXITSTATUS(status));
    return "signal " + std::to_string(WTERMSIG(status)) + " has ended it";
  }
  void let_go() noexcept { pid = -1; }

  pid_t pid;
};

Successor::Successor(Server& server, Settings settings)
    : replacement_(server),
      settings_(std::move(settings)),
      interrupt_(::eventfd(0, EFD_CLOEXEC), "an eventfd"),
      listening_(std::move(settings_.listening)) {
  const sigset_t set = user_signals();
  signals_ = Descriptor{::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), "a signalfd"};
  if (listening_.get() >= 0) {
    file_ = transport::SocketFile{settings_.path};
  } else if (!settings_.path.empty()) {
    try {
      if (const auto fault = transport::make_user_folder()) throw RestartError{fault->cause + "; " + fault->cure};
      if (settings_.path.size() > kSocketPathBytesMax) throw RestartError{settings_.path + " has more than 107 bytes"};
      transport::BoundSocket bound = transport::listen_on_path(Endpoint{"unix://" + settings_.path}, settings_.path);
      listening_ = Descriptor{bound.descriptor};
      ::chmod(settings_.path.c_str(), S_IRUSR | S_IWUSR);
      file_ = std::move(bound.file);
    } catch (const std::exception& error) {
      settings_.log(LogLevel::info, "no process can take over by --replace", {{"reason", error.what()}});
      settings_.path.clear();
    }
  }
  thread_ = std::jthread{[this] { wait(); }};
}

Successor::~Successor() {
  const std::uint64_t one = 1;
  static_cast<void>(::write(interrupt_.get(), &one, sizeof one));
}

void Successor::wait() {
  for (;;) {
    const bool is_replaced = taken_over_.load();
    std::array<pollfd, 3> waiting{pollfd{.fd = interrupt_.get(), .events = POLLIN, .revents = 0},
                                  pollfd{.fd = signals_.get(), .events = POLLIN, .revents = 0},
                                  pollfd{.fd = is_replaced ? -1 : listening_.get(), .events = POLLIN, .revents = 0}};
    if (::poll(waiting.data(), waiting.size(), -1) < 0) continue;
    if (waiting[0].revents != 0) return;
    try {
      if (waiting[1].revents != 0 && is_replaced)
        tell_replaced();
      else if (waiting[1].revents != 0)
        start_one();
      else if (waiting[2].revents != 0)
        meet_one();
    } catch (const std::exception& error) {
      settings_.log(LogLevel::error, "no other process takes over, and this one goes on",
                    {{"reason", std::string_view{error.what()}}});
    }
  }
}

// Several signals that have come count as one.
static void take_signals(const Descriptor& signals) {
  std::array<signalfd_siginfo, 8> told;
  while (::read(signals.get(), told.data(), sizeof told) > 0) {
  }
}

void Successor::tell_replaced() {
  take_signals(signals_);
  settings_.log(LogLevel::info, "this process has been replaced already: send SIGUSR2 to the one that serves",
                {{"pid", replaced_by_}});
}

// By the same command line: the program is what stands there now.
void Successor::start_one() {
  take_signals(signals_);
  if (settings_.command.empty()) throw RestartError{"this process does not know how it was started"};
  if (::getpid() == 1)
    throw RestartError{"it is process 1, with which a container ends: start another container in its place"};
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) throw RestartError{std::strerror(errno)};
  Descriptor own{ends[0]};
  Descriptor others{ends[1]};

  std::vector<std::string> environment{std::string{kRestartVariable} + '=' + std::to_string(others.get())};
  for (char** variable = environ; *variable != nullptr; ++variable) environment.emplace_back(*variable);
  const auto pointers = [](std::vector<std::string>& texts) {
    std::vector<char*> all;
    for (std::string& text : texts) all.push_back(text.data());
    all.push_back(nullptr);
    return all;
  };
  std::vector<std::string> command = settings_.command;
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&actions, others.get(), others.get());  // stays open
  // It holds SIGUSR2 from the start, as this one does: who sends that to both must not end it.
  const sigset_t held = user_signals();
  posix_spawnattr_setsigmask(&attributes, &held);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t pid = -1;
  const int error = ::posix_spawnp(&pid, command.front().c_str(), &actions, &attributes, pointers(command).data(),
                                   pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) throw RestartError{command.front() + " cannot be started: " + std::strerror(error)};
  Started child{pid};
  others = Descriptor{};  // with its process it ends
  settings_.log(LogLevel::info, "another process is started to take over", {{"pid", std::int64_t{pid}}});
  hand_over(std::move(own), &child);
}

void Successor::meet_one() {
  Descriptor socket{::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC)};
  if (socket.get() >= 0) return hand_over(std::move(socket), nullptr);
  const int error = errno;
  const std::string_view cure = runtime::cure_of_shortage(error);
  if (cure.empty()) return;  // it has left again
  // It still waits, and would be found at once.
  std::array<pollfd, 2> waiting{pollfd{.fd = interrupt_.get(), .events = POLLIN, .revents = 0},
                                pollfd{.fd = signals_.get(), .events = POLLIN, .revents = 0}};
  ::poll(waiting.data(), waiting.size(), kShortagePause);
  throw RestartError{std::string{std::strerror(error)}.append("; ").append(cure)};
}

void Successor::hand_over(Descriptor socket, Started* child) {
  try {
    RestartChannel channel{std::move(socket), interrupt_.get()};
    // One that was started by hand says at once who it is; one that has to be loaded has the time that it needs.
    const auto hello = understood<RestartHello>(
        channel.receive(child != nullptr ? settings_.start_time : kRestartStep, kRestartBytesMax));
    RestartSockets offer{
        .restart = kRestartVersion, .pid = ::getpid(), .uris = {}, .passed = {}, .path = settings_.path, .error = {}};
    std::vector<Descriptor> descriptors;
    try {
      if (hello.restart != kRestartVersion) throw RestartError{"the processes are of versions that do not fit"};
      for (transport::ListeningSocket& one : replacement_.share(kLoopTime)) {
        if (one.passed) offer.passed.push_back(static_cast<std::uint32_t>(offer.uris.size()));
        offer.uris.push_back(one.endpoint.uri());
        descriptors.push_back(std::move(one.descriptor));
      }
    } catch (const std::exception& error) {
      offer.error = error.what();
      channel.send(to_json(offer), kRestartStep);
      throw;
    }
    if (listening_.get() >= 0)
      descriptors.emplace_back(::fcntl(listening_.get(), F_DUPFD_CLOEXEC, 0), "the socket of restarts is shared");
    channel.send(to_json(offer), kRestartStep, descriptors);
    descriptors.clear();
    const auto ready = understood<RestartReady>(channel.receive(settings_.start_time, kRestartBytesMax));
    if (!ready.error.empty()) throw RestartError{ready.error};

    bool is_announced = false;
    std::string failure = "the server ends, or its loop does not answer";
    const auto commit = [&](const std::string& state, Descriptor& link) {
      try {
        channel.send(state, kRestartCommit);
        const auto said = understood<RestartPrepared>(channel.receive(kRestartOpen, kRestartBytesMax));
        if (said.prepared) {
          // Before it says anything itself: the manager listens to the main process alone.
          notify_main_process(hello.pid);
          is_announced = true;
          channel.send(to_json(RestartGo{.go = true}), kRestartCommit);
          link = channel.release();
          return true;
        }
        failure = said.error.empty() ? "the other process does not serve" : said.error;
      } catch (const std::exception& error) {
        failure = error.what();
      }
      // Which the manager hears only of a service with NotifyAccess=all.
      if (is_announced) notify_main_process(::getpid());
      return false;
    };
    if (!replacement_.hand_over(commit, kLoopTime)) throw RestartError{failure};
    replaced_by_ = hello.pid;
    taken_over_.store(true);
    if (ready.has_path) file_.keep();
    if (child != nullptr) child->let_go();
    settings_.log(LogLevel::info, "another process has taken over, and this one ends when its clients have gone",
                  {{"pid", hello.pid}});
  } catch (const std::exception& error) {
    // A process that has been started, and does not take over, ends.
    const std::string end = child != nullptr ? child->end() : std::string{};
    throw RestartError{error.what() + (end.empty() ? end : "; " + end)};
  }
}

}  // namespace wirecall::cli
