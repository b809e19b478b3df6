// See jetstream_job_finder.hpp.
#include "jetstream_store/jetstream_job_finder.hpp"

#include <algorithm>
#include <set>

#include "cluster/subjects.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::jetstream_store {

using durable::Done;
using durable::Failure;
using durable::Job;
using durable::Outcome;
using durable::Then;

// Jobs that one peek looks at: fewer may be of the state, or of the principal.
constexpr std::size_t kLooksMax = 2000;
const Failure kNoJob{.kind = Failure::Kind::unknown, .why = "there is no job of that id"};

static std::string last_by_subject(const std::string& subject) {
  return R"({"last_by_subj":)" + to_json(subject) + "}";
}

// JetStream takes no 0, and has none of that number.
static std::string by_number(std::uint64_t seq) {
  return R"({"seq":)" + std::to_string(seq == 0 ? UINT64_MAX : seq) + "}";
}

// Whether the message is that job's, of which it says all but what has become of it.
static bool read_message(const StoredMessage& message, const std::string& prefix, JetStreamJobFinder::Found& found) {
  const auto subject = job_subject(message.subject, prefix);
  const auto read = read_job(message.data);
  if (!subject || !read || read->head.id.value_or(message.seq) != found.job.id) return false;
  Job& job = found.job;
  job.method = subject->method;
  job.params = read->params;
  job.max_deliver = read->head.max_deliver;
  job.timeout_ms = read->head.timeout_ms;
  job.principal = read->head.principal;
  job.at_ms = message.at_ms;
  found.seq = message.seq;
  return true;
}

// ---- one job ----

// The message of one that waits or runs tells method and principal, and so the subjects of what is kept beside it: for
// those of a pattern nats-server may have to look through all that it has.
void JetStreamJobFinder::find(std::uint64_t id, Then<Found> then) {
  jetstream_->request("$JS.API.STREAM.MSG.GET." + subjects_->jobs, by_number(id),
                      [this, id, then = std::move(then)](const Outcome<Value>& outcome) mutable {
                        if (!outcome && outcome.error().kind != Failure::Kind::unknown)
                          return then(std::unexpected(outcome.error()));
                        Found found{.job = {.id = id, .method = {}, .params = {}}};
                        const bool there = outcome && read_message(stored_message(*outcome), subjects_->prefix, found);
                        read_beside(std::move(found), there, std::move(then));
                      });
}

void JetStreamJobFinder::read_beside(Found found, bool has_message, Then<Found> then) {
  const Job& job = found.job;
  const std::string get_result = "$JS.API.STREAM.MSG.GET." + subjects_->results;
  const std::string get_trial = "$JS.API.STREAM.MSG.GET." + subjects_->trials;
  const std::string result = has_message ? subjects_->result(job) : subjects_->results_of(job.id);
  const std::string buried = has_message ? subjects_->buried(job) : subjects_->buried_of(job.id);
  const std::string trial = has_message ? subjects_->trial(job) : subjects_->trials_of(job.id);
  jetstream_->request_all({{get_result, last_by_subject(result)},
                           {get_trial, last_by_subject(buried)},
                           {get_trial, last_by_subject(trial)}},
                          [this, found = std::move(found), has_message,
                           then = std::move(then)](const Outcome<std::vector<std::optional<Value>>>& outcome) mutable {
                            if (!outcome) return then(std::unexpected(outcome.error()));
                            const auto read = [&](std::size_t at, Job& job) -> std::optional<JobRecord> {
                              const std::optional<Value>& answer = (*outcome)[at];
                              if (!answer) return std::nullopt;
                              const std::string subject = text(jetstream_store::find(*answer, "message", "subject"));
                              const auto said = job_subject(subject, subjects_->prefix);
                              if (!said) return std::nullopt;
                              job.method = said->method;
                              return read_record(*answer, job);
                            };
                            Found kept = found;
                            if (read(0, kept.job)) {
                              kept.job.state = Job::State::done;
                              return then(std::move(kept));
                            }
                            Job tried = found.job;
                            const auto trial = read(2, tried);
                            if (const auto buried = read(1, kept.job); buried && !(trial && trial->seq > buried->seq)) {
                              kept.job.state = Job::State::dead;
                              kept.buried_seq = number(jetstream_store::find(*(*outcome)[1], "message", "seq"));
                              return then(std::move(kept));
                            }
                            if (!trial && !has_message) return then(std::unexpected(kNoJob));
                            if (!trial) return ask_whether_given(std::move(found), std::move(then));
                            found.job.deliveries = tried.deliveries;
                            found.job.result = std::move(tried.result);
                            found.job.state = trial->running ? Job::State::running : Job::State::waiting;
                            if (has_message && found.seq == trial->seq) return then(std::move(found));
                            found.seq = trial->seq;
                            read_tried(std::move(found), std::move(then));
                          });
}

// The message of one that was dead is elsewhere than its id says.
void JetStreamJobFinder::read_tried(Found found, Then<Found> then) {
  const std::string asked = by_number(found.seq);
  jetstream_->request("$JS.API.STREAM.MSG.GET." + subjects_->jobs, asked,
                      [this, found = std::move(found), then = std::move(then)](const Outcome<Value>& outcome) mutable {
                        if (!outcome && outcome.error().kind != Failure::Kind::unknown)
                          return then(std::unexpected(outcome.error()));
                        if (!outcome || !read_message(stored_message(*outcome), subjects_->prefix, found))
                          return then(std::unexpected(kNoJob));
                        then(std::move(found));
                      });
}

// Of one that was never tried it says enough whether it has been given.
void JetStreamJobFinder::ask_whether_given(Found found, Then<Found> then) {
  const std::string consumer = token_of(found.job.method);
  jetstream_->request("$JS.API.CONSUMER.INFO." + subjects_->jobs + '.' + consumer, {},
                      [found = std::move(found), then = std::move(then)](const Outcome<Value>& info) mutable {
                        if (!info && info.error().kind != Failure::Kind::unknown)
                          return then(std::unexpected(info.error()));
                        const std::uint64_t given =
                            info ? number(jetstream_store::find(*info, "delivered", "stream_seq")) : 0;
                        if (given >= found.seq) {
                          found.job.state = Job::State::running;
                          found.job.deliveries = 1;
                        }
                        then(std::move(found));
                      });
}

// ---- all queues ----

/// For all who have asked by the time it begins.
struct JetStreamJobFinder::Listing {
  std::vector<Then<std::vector<durable::QueueCounts>>> thens;
  std::map<std::string, durable::QueueCounts> queues = {};
};

// One at a time: there may be as many subjects as results and dead jobs.
void JetStreamJobFinder::list_queues(Then<std::vector<durable::QueueCounts>> then) {
  waiting_.push_back(std::move(then));
  if (!lists_) list_next();
}

void JetStreamJobFinder::list_next() {
  lists_ = !waiting_.empty();
  if (!lists_) return;
  auto listing = std::make_shared<Listing>(Listing{.thens = std::exchange(waiting_, {})});
  const auto count = [listing, &prefix = subjects_->prefix](std::string_view subject, std::uint64_t messages) {
    const auto read = job_subject(subject, prefix);
    if (!read) return;
    durable::QueueCounts& queue = listing->queues[read->method];
    queue.method = read->method;
    if (read->kind == "results") {
      queue.done += messages;
    } else if (read->kind == "buried") {
      queue.dead += messages;
    } else {
      queue.waiting += messages;
      queue.bytes += messages * read->bytes;
    }
  };
  const std::string& prefix = subjects_->prefix;
  jetstream_->list_subjects(subjects_->results, prefix + "results.>", count, [=, this](const Outcome<Done>& done) {
    if (!done) return end_listing(*listing, done);
    jetstream_->list_subjects(subjects_->trials, prefix + "buried.>", count, [=, this](const Outcome<Done>& dead) {
      if (!dead) return end_listing(*listing, dead);
      jetstream_->list_subjects(subjects_->jobs, prefix + "jobs.>", count, [=, this](const Outcome<Done>& waiting) {
        if (!waiting) return end_listing(*listing, waiting);
        count_running(listing);
      });
    });
  });
}

// What runs, of those that wait or run.
void JetStreamJobFinder::count_running(std::shared_ptr<Listing> listing) {
  list_consumers(
      [listing](const Value& info) {
        const auto found = listing->queues.find(text(jetstream_store::find(info, "config", "description")));
        if (found == listing->queues.end()) return;
        durable::QueueCounts& queue = found->second;
        queue.running = std::min(queue.waiting, number(jetstream_store::find(info, "num_ack_pending")));
        queue.waiting -= queue.running;
      },
      [this, listing](const Outcome<Done>& outcome) { end_listing(*listing, outcome); });
}

void JetStreamJobFinder::end_listing(Listing& listing, const Outcome<Done>& outcome) {
  std::vector<durable::QueueCounts> all;
  for (const auto& [method, queue] : listing.queues) all.push_back(queue);
  for (auto& then : std::exchange(listing.thens, {})) {
    if (outcome)
      then(all);
    else
      then(std::unexpected(outcome.error()));
  }
  list_next();
}

void JetStreamJobFinder::list_consumers(std::function<void(const Value& info)> each, Then<Done> then,
                                        std::uint64_t offset) {
  jetstream_->request(
      "$JS.API.CONSUMER.LIST." + subjects_->jobs, R"({"offset":)" + std::to_string(offset) + "}",
      [this, offset, each = std::move(each), then = std::move(then)](const Outcome<Value>& outcome) mutable {
        if (!outcome) return then(std::unexpected(outcome.error()));
        const Value* const consumers = jetstream_store::find(*outcome, "consumers");
        const std::size_t size = consumers != nullptr && consumers->is_array() ? consumers->size() : 0;
        for (std::size_t i = 0; i != size; ++i) each(consumers->as_array()[i]);
        if (size == 0 || offset + size >= number(jetstream_store::find(*outcome, "total"))) return then(Done{});
        list_consumers(std::move(each), std::move(then), offset + size);
      });
}

// ---- jobs one by one ----

/// Those that wait or run are found by walking through their messages, but for those that have been dead, whose
/// messages are elsewhere than their ids say: these, and those that are done or dead, are visited by their ids.
struct JetStreamJobFinder::Peeking {
  durable::Peek peek;
  Then<std::vector<Job>> then;
  std::vector<Job> jobs = {};
  std::map<std::uint64_t, std::string> visits = {};  // by id: the subject of what is kept
  std::uint64_t walked = 0;
  std::size_t looks = 0;
  std::size_t count = 0;  // that were added of late
  std::size_t bytes = 0;

  [[nodiscard]] bool walks() const noexcept {
    return peek.state == Job::State::waiting || peek.state == Job::State::running;
  }
  [[nodiscard]] static std::size_t bytes_of(const Job& job) noexcept { return job.params.size() + job.result.size(); }
  [[nodiscard]] bool is_full() const noexcept { return count == peek.count || bytes > peek.bytes; }
  void add(Job job) {
    if (job.state != peek.state || job.method != peek.method) return;
    if (peek.principal && *peek.principal != job.principal) return;
    ++count;
    bytes += bytes_of(job);
    jobs.push_back(std::move(job));
  }
  void end() {
    std::ranges::sort(jobs, {}, &Job::id);
    std::size_t kept = 0;
    std::size_t kept_bytes = 0;
    while (kept != std::min(jobs.size(), peek.count)) {
      kept_bytes += bytes_of(jobs[kept]);
      if (kept != 0 && kept_bytes > peek.bytes) break;
      ++kept;
    }
    jobs.resize(kept);
    then(std::move(jobs));
  }
};

void JetStreamJobFinder::peek(durable::Peek peek, Then<std::vector<Job>> then) {
  const bool is_done = peek.state == Job::State::done;
  const std::string& stream = is_done ? subjects_->results : subjects_->trials;
  const std::string principal = peek.principal ? token_of(*peek.principal) : "*";
  const std::string_view kind = is_done ? "results" : peek.state == Job::State::dead ? "buried" : "trials";
  const std::string filter = subjects_->prefix + std::string{kind} + '.' + principal +
                             (kind == "buried" ? ".*.*." : ".*.") + cluster::subject_of_name(peek.method);
  auto peeking = std::make_shared<Peeking>(Peeking{.peek = std::move(peek), .then = std::move(then)});
  peeking->walked = peeking->peek.after;
  jetstream_->list_subjects(
      stream, filter,
      [peeking, &prefix = subjects_->prefix](std::string_view subject, std::uint64_t) {
        const auto read = job_subject(subject, prefix);
        if (read && read->id > peeking->peek.after) peeking->visits.emplace(read->id, subject);
      },
      [this, peeking](const Outcome<Done>& listed) {
        if (!listed) return peeking->then(std::unexpected(listed.error()));
        if (peeking->walks()) return walk(peeking);
        visit(peeking);
      });
}

void JetStreamJobFinder::walk(std::shared_ptr<Peeking> peeking) {
  const durable::Peek& peek = peeking->peek;
  const std::string subjects = subjects_->prefix + "jobs." + (peek.principal ? token_of(*peek.principal) : "*") +
                               ".*." + cluster::subject_of_name(peek.method);
  const std::string asked =
      R"({"seq":)" + std::to_string(peeking->walked + 1) + R"(,"next_by_subj":)" + to_json(subjects) + "}";
  jetstream_->request("$JS.API.STREAM.MSG.GET." + subjects_->jobs, asked,
                      [this, peeking](const Outcome<Value>& outcome) {
                        if (!outcome && outcome.error().kind != Failure::Kind::unknown)
                          return peeking->then(std::unexpected(outcome.error()));
                        const StoredMessage message = outcome ? stored_message(*outcome) : StoredMessage{};
                        if (message.seq == 0) return visit(peeking);  // there are no more
                        peeking->walked = message.seq;
                        Found found{.job = {.id = message.seq, .method = {}, .params = {}}};
                        if (!read_message(message, subjects_->prefix, found)) return walk(peeking);  // it has been dead
                        read_beside(std::move(found), true, [this, peeking, seq = message.seq](Outcome<Found> beside) {
                          if (!beside && beside.error().kind != Failure::Kind::unknown)
                            return peeking->then(std::unexpected(beside.error()));
                          peeking->visits.erase(seq);
                          if (beside) peeking->add(std::move(beside->job));
                          if (!peeking->is_full() && ++peeking->looks < kLooksMax) return walk(peeking);
                          // Of the others only those are missing that come before it.
                          peeking->visits.erase(peeking->visits.lower_bound(seq), peeking->visits.end());
                          peeking->count = 0;
                          peeking->bytes = 0;
                          peeking->looks = 0;
                          visit(peeking);
                        });
                      });
}

void JetStreamJobFinder::visit(std::shared_ptr<Peeking> peeking) {
  if (peeking->is_full() || peeking->visits.empty() || ++peeking->looks >= kLooksMax) return peeking->end();
  const auto next = peeking->visits.extract(peeking->visits.begin());
  const std::uint64_t id = next.key();
  if (peeking->walks()) {
    return find(id, [this, peeking](Outcome<Found> found) {
      if (!found && found.error().kind != Failure::Kind::unknown) return peeking->then(std::unexpected(found.error()));
      if (found) peeking->add(std::move(found->job));
      visit(peeking);
    });
  }
  const bool is_done = peeking->peek.state == Job::State::done;
  jetstream_->request("$JS.API.STREAM.MSG.GET." + (is_done ? subjects_->results : subjects_->trials),
                      last_by_subject(next.mapped()), [this, peeking, id](const Outcome<Value>& outcome) {
                        if (!outcome && outcome.error().kind != Failure::Kind::unknown)
                          return peeking->then(std::unexpected(outcome.error()));
                        Job job{.id = id, .method = peeking->peek.method, .params = {}, .state = peeking->peek.state};
                        if (outcome && read_record(*outcome, job)) peeking->add(std::move(job));
                        visit(peeking);
                      });
}

}  // namespace wirecall::jetstream_store
