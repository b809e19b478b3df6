// Database: what is appended, how far consumers are, jobs and their limits, over restarts and in simulated time.
#include "local_store/database.hpp"

#include <fstream>
#include <random>
#include <sys/stat.h>

#include "tests/local_store/failing_disk.hpp"
#include "tests/local_store/world.hpp"

namespace wirecall::local_store {
namespace {

using durable::Job;
using Seqs = std::vector<std::uint64_t>;

TEST(Database, numbers_events_over_all_topics_and_over_restarts) {
  DatabaseWorld world;
  EXPECT_EQ(world.append("a.b"), 1U);
  EXPECT_EQ(world.append("c"), 2U);
  world.reopen();
  EXPECT_EQ(world.append("a.d"), 3U);
  EXPECT_EQ(world.read("a.>"), (Seqs{1, 3}));
  EXPECT_EQ(world.read("a.>", 1), (Seqs{3}));
  const durable::Fetched fetched = world.database->fetch({.pattern = "c", .after = 0, .count = 10, .bytes = 10});
  ASSERT_EQ(fetched.events.size(), 1U);
  EXPECT_EQ(fetched.events[0].topic, "c");
  EXPECT_EQ(fetched.events[0].params, "[1]");
  EXPECT_EQ(fetched.scanned, 3U);
}

TEST(Database, never_gives_a_number_twice_even_where_the_last_event_is_forgotten) {
  DatabaseWorld world{{.folder = {}, .rules = {{.pattern = "a", .max_age_ms = 10}}}};
  EXPECT_EQ(world.append("a"), 1U);
  world.now += 11;
  EXPECT_TRUE(world.database->expire(world.now));
  EXPECT_EQ(world.read(">"), Seqs{});
  world.reopen();
  EXPECT_EQ(world.append("a"), 2U);
}

TEST(Database, what_was_not_committed_has_not_happened) {
  DatabaseWorld world;
  world.append("a");
  world.database->begin();
  static_cast<void>(world.database->append({.topic = "a", .params = "[2]"}, world.now));
  static_cast<void>(world.database->push({.method = "m", .params = "[]"}, world.now));
  world.database->rollback();
  EXPECT_EQ(world.read("a"), Seqs{1});
  EXPECT_TRUE(world.database->list_queues().empty());
  EXPECT_EQ(world.append("a"), 2U);
}

TEST(Database, keeps_a_message_id_once_within_its_topic_and_window) {
  DatabaseWorld world{{.folder = {}, .dedup_ms = 1000}};
  EXPECT_EQ(world.append("a", "[1]", "x"), 1U);
  EXPECT_EQ(world.append("b", "[1]", "x"), 2U);
  world.reopen();
  const durable::Appended again =
      world.change([&] { return world.database->append({.topic = "a", .params = "[9]", .msg_id = "x"}, world.now); });
  EXPECT_EQ(again.seq, 1U);
  EXPECT_TRUE(again.duplicate);
  world.now += 1001;
  EXPECT_TRUE(world.database->expire(world.now));
  EXPECT_EQ(world.append("a", "[1]", "x"), 3U);
}

TEST(Database, forgets_the_oldest_beyond_count_bytes_and_age) {
  DatabaseWorld world{{.folder = {},
                       .rules = {{.pattern = "few.>", .max_count = 2},
                                 {.pattern = "small.>", .max_bytes = 300},
                                 {.pattern = "new.>", .max_age_ms = 100}}}};
  for (int i = 0; i != 3; ++i) world.append("few.a");
  EXPECT_EQ(world.read("few.>"), (Seqs{2, 3}));
  for (int i = 0; i != 3; ++i) world.append("small.a", std::string(100, '1'));
  EXPECT_EQ(world.read("small.>"), (Seqs{6}));
  world.append("new.a");
  world.now += 100;
  world.append("new.b");
  EXPECT_TRUE(world.database->expire(world.now));
  EXPECT_EQ(world.read("new.>"), (Seqs{7, 8}));
  world.now += 1;
  EXPECT_TRUE(world.database->expire(world.now));
  EXPECT_EQ(world.read("new.>"), (Seqs{8}));
  EXPECT_EQ(world.refusal([&] {
    static_cast<void>(world.database->append({.topic = "small.a", .params = std::string(300, '1')}, world.now));
  }),
            "max_bytes");
}

TEST(Database, knows_how_far_a_consumer_is_over_restarts) {
  DatabaseWorld world;
  for (int i = 0; i != 5; ++i) world.append("a");
  const durable::ConsumerSettings settings{.name = "c", .pattern = "a", .after = 1};
  EXPECT_EQ(world.change([&] { return world.database->open_consumer(settings); }).floor, 1U);
  world.change([&] {
    world.database->progress({.consumer = "c", .floor = 2, .tried = durable::Tried{4, 1, true}}, world.now);
    world.database->progress({.consumer = "c", .floor = 2, .tried = durable::Tried{3, 2, false}}, world.now);
    return 0;
  });
  world.reopen();
  const std::vector<durable::ConsumerState> all = world.change([&] { return world.database->consumers(); });
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].floor, 2U);
  EXPECT_TRUE(all[0].tried.empty());  // there may be much, and who joins is told
  const std::vector<durable::Tried> tried = world.change([&] { return world.database->open_consumer(settings); }).tried;
  ASSERT_EQ(tried.size(), 2U);
  EXPECT_EQ(tried[0].seq, 3U);
  EXPECT_EQ(tried[0].deliveries, 2U);
  EXPECT_TRUE(tried[1].acknowledged);
  durable::ConsumerSettings without = settings;
  without.with_tried = false;
  EXPECT_TRUE(world.change([&] { return world.database->open_consumer(without); }).tried.empty());
  world.change([&] { return world.database->progress({.consumer = "c", .floor = 4}, world.now), 0; });
  EXPECT_TRUE(world.change([&] { return world.database->open_consumer(settings); }).tried.empty());
}

TEST(Database, the_consumers_are_read_and_nothing_is_written) {
  DatabaseWorld world;
  for (const char* const name : {"b", "a"})
    world.change([&] { return world.database->open_consumer({.name = name, .pattern = "x", .principal = "p"}); });
  const auto written = [&] { return std::filesystem::file_size(world.folder.file() + "-wal"); };
  const auto before = written();
  const std::vector<durable::ConsumerState> all = world.database->consumers();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].settings.name, "a");
  EXPECT_EQ(all[0].settings.principal, "p");
  EXPECT_EQ(written(), before);
}

TEST(Database, jobs_are_found_by_indexes_also_in_a_file_that_had_none) {
  DatabaseWorld world;
  const auto check = [&] {
    world.database.reset();
    const auto plan = [&](const std::string& sql) {
      return read_file(world.folder.file(), ("EXPLAIN QUERY PLAN " + sql).c_str());
    };
    const std::string ran = plan("UPDATE job SET state=0 WHERE state=1");
    EXPECT_NE(ran.find("job_running"), std::string::npos) << ran;
    for (const auto& [more, index] : {std::pair{"", "job_peeked"}, std::pair{" AND principal='p'", "job_own"}}) {
      const std::string peeked = plan("SELECT params FROM job WHERE method='m' AND state=2 AND id>0" +
                                      std::string{more} + " ORDER BY id LIMIT 20");
      EXPECT_NE(peeked.find(index), std::string::npos) << peeked;
      EXPECT_EQ(peeked.find("TEMP B-TREE"), std::string::npos) << peeked;
    }
    const std::string due =
        plan("SELECT params FROM job WHERE method='m' AND state=0 AND due<=9 ORDER BY due,id LIMIT 20");
    EXPECT_NE(due.find("job_due"), std::string::npos) << due;
    EXPECT_EQ(due.find("TEMP B-TREE"), std::string::npos) << due;
  };
  check();
  change_file(world.folder.file(), "DROP INDEX job_running; DROP INDEX job_peeked; DROP INDEX job_own");
  world.reopen();
  check();
}

TEST(Database, a_consumer_keeps_its_pattern_until_it_is_forgotten) {
  DatabaseWorld world;
  world.change([&] { return world.database->open_consumer({.name = "c", .pattern = "a"}); });
  EXPECT_NE(world.refusal([&] { static_cast<void>(world.database->open_consumer({.name = "c", .pattern = "b"})); }),
            "none");
  world.change([&] { return world.database->forget_consumer("c"), 0; });
  EXPECT_EQ(world.refusal([&] { static_cast<void>(world.database->open_consumer({.name = "c", .pattern = "b"})); }),
            "none");
  EXPECT_NE(world.refusal([&] { world.database->forget_consumer("d"); }), "none");
}

TEST(Database, a_dead_letter_is_kept_together_with_the_progress_behind_it) {
  DatabaseWorld world;
  world.append("a");
  world.change([&] { return world.database->open_consumer({.name = "c", .pattern = "a"}); });
  world.change([&] {
    world.database->progress(
        {.consumer = "c", .floor = 1, .dead = durable::NewEvent{.topic = "dead.c", .params = "{}"}}, world.now);
    return 0;
  });
  EXPECT_EQ(world.read("dead.>"), Seqs{2});
}

TEST(Database, a_job_runs_when_it_is_due_and_waits_again_after_a_restart) {
  DatabaseWorld world;
  EXPECT_EQ(world.push({.method = "m", .params = "[1]", .delay_ms = 100}), 1U);
  EXPECT_EQ(world.push({.method = "m", .params = "[2]"}), 2U);
  std::vector<Job> taken = world.take("m");
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0].params, "[2]");
  EXPECT_EQ(taken[0].deliveries, 1U);
  EXPECT_TRUE(world.take("m").empty());
  world.reopen();
  taken = world.take("m");
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0].deliveries, 2U);
  world.finish({.id = 2, .state = Job::State::done, .result = "7"});
  EXPECT_EQ(world.database->find_job(2).result, "7");
  world.now += 100;
  EXPECT_EQ(world.take("m").size(), 1U);
}

TEST(Database, a_job_that_failed_is_tried_again_later_or_is_dead_and_can_be_renewed) {
  DatabaseWorld world;
  world.push({.method = "m", .params = "[1]", .timeout_ms = 17});
  EXPECT_EQ(world.take("m").at(0).timeout_ms, 17U);
  world.finish({.id = 1, .state = Job::State::waiting, .result = "{}", .delay_ms = 50});
  EXPECT_TRUE(world.take("m").empty());
  world.now += 50;
  EXPECT_EQ(world.take("m").at(0).deliveries, 2U);
  world.finish({.id = 1, .state = Job::State::waiting, .result = {}, .untried = true});
  EXPECT_EQ(world.take("m").at(0).deliveries, 2U);
  world.finish({.id = 1, .state = Job::State::dead, .result = R"({"code":1})"});
  ASSERT_EQ(world.database->peek({.method = "m", .state = Job::State::dead, .count = 10}).size(), 1U);
  world.change([&] { return world.database->retry_job(1, world.now), 0; });
  EXPECT_EQ(world.take("m").at(0).deliveries, 1U);
  EXPECT_NE(world.refusal([&] { world.database->drop_job(1); }), "none");
}

TEST(Database, a_full_queue_refuses_and_forgets_nothing) {
  DatabaseWorld world{{.folder = {}, .queue_count = 2, .queue_bytes = 100, .principal_bytes = 60}};
  world.push({.method = "m", .params = "[1]"});
  world.push({.method = "m", .params = "[2]"});
  const auto push = [&](durable::NewJob job) {
    return world.refusal([&] { static_cast<void>(world.database->push(job, world.now)); });
  };
  EXPECT_EQ(push({.method = "m", .params = "[3]"}), "durable.queue_count");
  world.reopen();
  EXPECT_EQ(push({.method = "m", .params = "[3]"}), "durable.queue_count");
  EXPECT_EQ(push({.method = "n", .params = std::string(101, '1'), .principal = "p"}), "durable.principal_bytes");
  EXPECT_EQ(push({.method = "n", .params = std::string(60, '1'), .principal = "p"}), "none");
  EXPECT_EQ(push({.method = "n", .params = std::string(41, '1'), .principal = "q"}), "durable.queue_bytes");
  EXPECT_EQ(push({.method = "o", .params = "1", .principal = "p"}), "durable.principal_bytes");
  world.take("m", 1);
  EXPECT_EQ(push({.method = "m", .params = "[3]"}), "durable.queue_count");
  world.finish({.id = 1, .state = Job::State::done, .result = "1"});
  EXPECT_EQ(push({.method = "m", .params = "[3]"}), "none");
}

TEST(Database, a_job_that_ran_waits_again_when_it_is_told_to_and_its_outcome_is_refused_then) {
  DatabaseWorld world;
  world.push({.method = "m", .params = "[1]"});
  world.take("m");
  world.database.reset();
  world.database = std::make_unique<Database>(world.options, world.now, Opening::handed);
  EXPECT_EQ(world.database->find_job(1).state, Job::State::running);
  EXPECT_EQ(world.database->list_queues().at(0).running, 1U);
  world.change([&] { return world.database->reset_jobs(), 0; });
  EXPECT_EQ(world.database->find_job(1).state, Job::State::waiting);
  EXPECT_EQ(world.database->list_queues().at(0).waiting, 1U);
  EXPECT_EQ(world.database->list_queues().at(0).running, 0U);
  EXPECT_EQ(world.refusal([&] { world.database->finish({.id = 1, .result = "1"}, world.now); }),
            "the job is not running any more");
}

TEST(Database, jobs_are_taken_and_looked_at_by_so_many_bytes_and_one_at_least) {
  DatabaseWorld world;
  for (int i = 0; i != 3; ++i) world.push({.method = "m", .params = std::string(100, '1')});
  const auto peek = [&](std::size_t bytes) {
    return world.database->peek({.method = "m", .count = 10, .bytes = bytes}).size();
  };
  EXPECT_EQ(peek(250), 2U);
  EXPECT_EQ(peek(1), 1U);
  const auto take = [&](std::size_t bytes) {
    return world.change([&] { return world.database->take({.method = "m", .count = 10, .bytes = bytes}, world.now); });
  };
  const durable::Taken first = take(250);
  EXPECT_EQ(first.jobs.size(), 2U);
  EXPECT_EQ(first.next_ms, 0U);
  EXPECT_EQ(take(1).jobs.size(), 1U);
}

TEST(Database, no_more_methods_have_queues_than_may) {
  DatabaseWorld world;
  const std::string limit = world.refusal([&] {
    for (int i = 0; i != 16'385; ++i) {
      static_cast<void>(world.database->push(
          {.method = "m" + std::to_string(i), .params = {}, .principal = std::to_string(i / 4096)}, world.now));
    }
  });
  EXPECT_EQ(limit, "queues");
  EXPECT_EQ(world.database->list_queues().size(), 16'384U);
  world.push({.method = "m0", .params = {}});
}

TEST(Database, behind_the_largest_number_there_is_nothing) {
  DatabaseWorld world;
  world.append("a");
  EXPECT_EQ(world.read("a", UINT64_MAX), Seqs{});
  EXPECT_THROW(static_cast<void>(world.database->find_job(UINT64_MAX)), Failed);
}

TEST(Database, results_beyond_their_bytes_are_forgotten_the_oldest_first) {
  DatabaseWorld world{{.folder = {}, .queue_bytes = 250}};
  const auto run = [&](std::uint64_t id) {
    EXPECT_EQ(world.push({.method = "m", .params = {}}), id);
    world.take("m");
    world.finish({.id = id, .state = Job::State::done, .result = std::string(100, '1')});
  };
  run(1);
  run(2);
  EXPECT_EQ(world.database->find_job(1).state, Job::State::done);
  world.reopen();
  run(3);
  EXPECT_THROW(static_cast<void>(world.database->find_job(1)), Failed);
  EXPECT_EQ(world.database->find_job(2).state, Job::State::done);
  EXPECT_EQ(world.database->find_job(3).state, Job::State::done);
}

TEST(Database, a_principal_has_so_many_jobs_and_no_more) {
  DatabaseWorld world{{.folder = {}, .principal_jobs = 2}};
  const auto push = [&](const std::string& method, const std::string& principal) {
    return world.refusal([&] {
      static_cast<void>(world.database->push({.method = method, .params = {}, .principal = principal}, world.now));
    });
  };
  EXPECT_EQ(push("m", "p"), "none");
  EXPECT_EQ(push("n", "p"), "none");
  EXPECT_EQ(push("o", "p"), "durable.principal_jobs");
  EXPECT_EQ(push("o", "q"), "none");
  world.reopen();
  EXPECT_EQ(push("o", "p"), "durable.principal_jobs");
  world.take("m");
  world.finish({.id = 1, .state = Job::State::done, .result = "1"});
  EXPECT_EQ(push("o", "p"), "none");
}

TEST(Database, a_principal_keeps_so_many_events_and_bytes_and_has_room_again_when_they_go) {
  DatabaseWorld world{{.folder = {},
                       .rules = {{.pattern = "old.>", .max_age_ms = 10}, {.pattern = "few", .max_count = 1}},
                       .principal_events = 3,
                       .principal_event_bytes = 1000}};
  const auto publish = [&](const std::string& topic, const std::string& principal, std::size_t bytes = 1) {
    return world.refusal([&] {
      static_cast<void>(world.database->append(
          {.topic = topic, .params = std::string(bytes, '1'), .principal = principal}, world.now));
    });
  };
  EXPECT_EQ(publish("old.a", "p"), "none");
  EXPECT_EQ(publish("few", "p"), "none");
  EXPECT_EQ(publish("b", "p", 900), "durable.principal_event_bytes");
  EXPECT_EQ(publish("b", "p"), "none");
  EXPECT_EQ(publish("b", "p"), "durable.principal_events");
  EXPECT_EQ(publish("b", "q"), "none");
  EXPECT_EQ(publish("b", ""), "none");
  world.reopen();
  EXPECT_EQ(publish("b", "p"), "durable.principal_events");
  world.now += 11;
  EXPECT_TRUE(world.database->expire(world.now));
  EXPECT_EQ(publish("b", "p"), "none");
  EXPECT_EQ(publish("b", "p"), "durable.principal_events");
  EXPECT_EQ(publish("few", "q"), "none");  // in place of that of p
  EXPECT_EQ(publish("b", "p"), "none");
}

TEST(Database, what_is_refused_or_taken_back_is_on_nobodys_account) {
  DatabaseWorld world{{.folder = {}, .principal_events = 1}};
  world.database->begin();
  static_cast<void>(world.database->append({.topic = "a", .params = {}, .principal = "p"}, world.now));
  world.database->rollback();
  EXPECT_EQ(world.refusal([&] {
    static_cast<void>(world.database->append({.topic = "a", .params = {}, .principal = "p"}, world.now));
  }),
            "none");
}

TEST(Database, an_event_that_is_given_up_and_too_large_to_be_kept_is_behind_its_consumer_all_the_same) {
  DatabaseWorld world{{.folder = {}, .rules = {{.pattern = "dead.>", .max_bytes = 80}}}};
  world.append("a");
  world.change([&] { return world.database->open_consumer({.name = "c", .pattern = "a"}); });
  const durable::Appended dead = world.change([&] {
    return world.database->progress(
        {.consumer = "c", .floor = 1, .dead = durable::NewEvent{.topic = "dead.c", .params = std::string(100, '1')}},
        world.now);
  });
  EXPECT_EQ(dead.seq, 0U);
  EXPECT_EQ(world.database->consumers().at(0).floor, 1U);
}

TEST(Database, a_dead_letter_for_which_its_principal_has_no_room_is_refused_until_there_is) {
  DatabaseWorld world{{.folder = {}, .rules = {{.pattern = "a", .max_age_ms = 10}}, .principal_events = 1}};
  world.change([&] { return world.database->append({.topic = "a", .params = "[]", .principal = "p"}, world.now); });
  world.change([&] { return world.database->open_consumer({.name = "c", .pattern = "a", .principal = "p"}); });
  const auto give_up = [&] {
    return world.refusal([&] {
      static_cast<void>(world.database->progress(
          {.consumer = "c", .floor = 1, .dead = durable::NewEvent{.topic = "dead.c", .params = "{}", .principal = "p"}},
          world.now));
    });
  };
  EXPECT_EQ(give_up(), "durable.principal_events");
  EXPECT_EQ(world.database->consumers().at(0).floor, 0U);
  world.now += 11;
  EXPECT_TRUE(world.database->expire(world.now));
  EXPECT_EQ(give_up(), "none");
  EXPECT_EQ(world.read("dead.>"), Seqs{2});
}

TEST(Database, a_result_is_kept_for_its_time_and_a_job_id_of_a_message_once) {
  DatabaseWorld world{{.folder = {}, .result_ms = 1000}};
  EXPECT_EQ(world.push({.method = "m", .params = "[1]", .msg_id = "x"}), 1U);
  EXPECT_EQ(world.push({.method = "m", .params = "[1]", .msg_id = "x"}), 1U);
  world.take("m");
  world.finish({.id = 1, .state = Job::State::done, .result = "1"});
  world.now += 1000;
  EXPECT_TRUE(world.database->expire(world.now));
  EXPECT_EQ(world.database->find_job(1).result, "1");
  EXPECT_EQ(world.database->find_job(1).params, "");
  world.now += 1;
  EXPECT_TRUE(world.database->expire(world.now));
  EXPECT_THROW(static_cast<void>(world.database->find_job(1)), Failed);
  EXPECT_TRUE(world.database->list_queues().empty());
}

TEST(Database, the_params_of_jobs_that_are_done_count_and_the_oldest_go) {
  DatabaseWorld world{{.folder = {}, .queue_bytes = 250}};
  for (int i = 0; i != 3; ++i) {
    world.push({.method = "m", .params = std::string(100, '1')});
    world.take("m");
    world.finish({.id = static_cast<std::uint64_t>(i + 1), .state = Job::State::done, .result = "null"});
  }
  EXPECT_EQ(world.database->list_queues().at(0).done, 2U);
  EXPECT_THROW(static_cast<void>(world.database->find_job(1)), Failed);
  world.reopen();
  world.push({.method = "m", .params = std::string(100, '1')});
  world.take("m");
  world.finish({.id = 4, .state = Job::State::done, .result = "null"});
  EXPECT_EQ(world.database->list_queues().at(0).done, 2U);
}

TEST(Database, the_message_ids_of_events_and_of_jobs_are_not_the_same) {
  DatabaseWorld world;
  EXPECT_EQ(world.append("queue:m", "[1]", "x"), 1U);
  EXPECT_EQ(world.append("a", "[1]"), 2U);
  const durable::Pushed pushed =
      world.change([&] { return world.database->push({.method = "m", .params = "[]", .msg_id = "x"}, world.now); });
  EXPECT_FALSE(pushed.duplicate);
}

TEST(Database, a_message_id_is_one_of_its_method_on_whichever_account_it_comes_again) {
  DatabaseWorld world;
  EXPECT_EQ(world.push({.method = "m", .params = "[1]", .msg_id = "x", .principal = "source a"}), 1U);
  EXPECT_EQ(world.push({.method = "m", .params = "[1]", .msg_id = "x", .principal = "source b"}), 1U);
  EXPECT_EQ(world.push({.method = "n", .params = "[1]", .msg_id = "x", .principal = "source b"}), 2U);
}

TEST(Database, a_topic_that_two_rules_name_is_of_the_first) {
  DatabaseWorld world{{.folder = {}, .rules = {{.pattern = "a", .max_count = 1}, {.pattern = "a", .max_count = 9}}}};
  world.append("a");
  world.append("a");
  EXPECT_EQ(world.read("a"), Seqs{2});
  EXPECT_EQ(world.database->list_topics().size(), 2U);
}

TEST(Database, a_principal_makes_so_many_consumers_and_no_more_and_keeps_those_that_others_join) {
  DatabaseWorld world;
  const auto open = [&](const std::string& name, const std::string& principal) {
    return world.refusal([&] {
      static_cast<void>(world.database->open_consumer({.name = name, .pattern = "a", .principal = principal}));
    });
  };
  for (int i = 0; i != 1024; ++i) ASSERT_EQ(open("c" + std::to_string(i), "p"), "none");
  EXPECT_EQ(open("one_more", "p"), "consumers");
  EXPECT_EQ(open("c0", "q"), "none");
  EXPECT_EQ(open("one_more", "p"), "consumers");
  EXPECT_EQ(open("one_more", "q"), "none");
  world.change([&] { return world.database->forget_consumer("c0"), 0; });
  EXPECT_EQ(open("again", "p"), "none");
}

TEST(Database, a_principal_has_jobs_and_results_of_so_many_methods_and_no_more) {
  DatabaseWorld world;
  world.database->begin();
  for (int i = 0; i != 4096; ++i) {
    static_cast<void>(
        world.database->push({.method = "m" + std::to_string(i), .params = "[]", .principal = "p"}, world.now));
  }
  world.database->commit(world.now);
  const auto push = [&](const std::string& method, const std::string& principal) {
    return world.refusal([&] {
      static_cast<void>(world.database->push({.method = method, .params = "[]", .principal = principal}, world.now));
    });
  };
  world.take("m0");
  world.finish({.id = 1, .state = Job::State::done, .result = "1"});
  for (int i = 0; i != 2; ++i) {
    EXPECT_EQ(push("more", "p"), "queues");
    world.reopen();
  }
  EXPECT_EQ(push("m0", "p"), "none");
  EXPECT_EQ(push("more", "q"), "none");
  world.change([&] { return world.database->drop_job(2), 0; });
  EXPECT_EQ(push("more", "p"), "none");
}

TEST(Database, jobs_are_looked_at_of_one_principal_or_of_all) {
  DatabaseWorld world;
  world.push({.method = "m", .params = "[1]", .principal = "p"});
  world.push({.method = "m", .params = "[2]", .principal = "q"});
  EXPECT_EQ(world.database->peek({.method = "m", .count = 10}).size(), 2U);
  const std::vector<Job> jobs = world.database->peek({.method = "m", .count = 10, .principal = "q"});
  ASSERT_EQ(jobs.size(), 1U);
  EXPECT_EQ(jobs[0].params, "[2]");
  EXPECT_EQ(jobs[0].principal, "q");
}

TEST(Database, a_store_that_rests_writes_nothing_but_the_time_now_and_then) {
  DatabaseWorld world;
  world.append("a");
  const auto written = [&] { return std::filesystem::file_size(world.folder.file() + "-wal"); };
  const auto before = written();
  world.now += 1000;
  EXPECT_TRUE(world.database->expire(world.now));
  EXPECT_EQ(written(), before);
  world.now += 60'000;
  EXPECT_TRUE(world.database->expire(world.now));
  EXPECT_GT(written(), before);
  world.database.reset();
  EXPECT_EQ(Database(world.options, 0).last_ms(), world.now);
}

// ---- a disk that fails ----

TEST(DatabaseOnAFailingDisk, keeps_nothing_of_what_could_not_be_written_or_synced_and_goes_on_once_it_can) {
  FailingDisk disk;
  DatabaseWorld world;
  world.options.fsync = Fsync::always;
  world.reopen();
  world.append("a");
  for (bool* const fails : {&disk.writes_fail, &disk.syncs_fail}) {
    *fails = true;
    EXPECT_THROW(static_cast<void>(world.append("a")), Failed);
    world.database->rollback();
    *fails = false;
    EXPECT_EQ(world.read("a").size(), world.database->last_seq());
  }
  EXPECT_EQ(world.append("a"), 2U);
  world.reopen();
  EXPECT_EQ(world.read("a"), (Seqs{1, 2}));
}

TEST(DatabaseOnAFailingDisk, what_is_taken_back_costs_what_was_changed_and_reads_nothing_however_much_there_is) {
  FailingDisk disk;
  DatabaseWorld world{{.folder = {}, .rules = {{.pattern = "a", .max_count = 3}}}};
  // More than is in memory of the file.
  for (int i = 0; i != 40; ++i) world.append("b", std::string(100'000, '1'));
  world.change([&] {
    for (int i = 0; i != 2000; ++i) {
      static_cast<void>(
          world.database->push({.method = "m" + std::to_string(i), .params = std::string(3000, '1')}, world.now));
    }
    return 0;
  });
  world.append("a");
  world.reopen();
  world.database->begin();
  static_cast<void>(world.database->append({.topic = "a", .params = {}}, world.now));
  static_cast<void>(world.database->take({.method = "m7", .count = 1}, world.now));
  disk.reads = 0;
  world.database->rollback();
  world.database->refresh();
  EXPECT_EQ(disk.reads, 0);
  EXPECT_EQ(world.database->list_queues().size(), 2000U);
  EXPECT_EQ(world.database->fetch({.pattern = "none", .after = 0, .count = 1, .bytes = 1}).scanned, 41U);
  EXPECT_EQ(world.append("a"), 42U);
  EXPECT_EQ(world.append("a"), 43U);
  EXPECT_EQ(world.append("a"), 44U);
  EXPECT_EQ(world.read("a"), (Seqs{42, 43, 44}));
  world.reopen();
  EXPECT_EQ(world.append("a"), 45U);
}

TEST(DatabaseOnAFailingDisk, what_it_counts_is_what_is_in_its_tables_whatever_has_failed) {
  FailingDisk disk;
  DatabaseWorld world{{.folder = {},
                       .rules = {{.pattern = "a.>", .max_count = 5}, {.pattern = "b.>", .max_bytes = 800}},
                       .result_ms = 50,
                       .queue_bytes = 2000,
                       .principal_jobs = 12,
                       .principal_events = 6}};
  world.options.fsync = Fsync::always;
  world.reopen();
  std::minstd_rand random{7};
  const auto below = [&](std::uint32_t end) { return static_cast<std::uint32_t>(random()) % end; };
  const auto one = [&](std::string_view word) { return std::string{word} + static_cast<char>('0' + below(3)); };
  const auto act = [&] {
    Database& database = *world.database;
    const std::string text(below(60), '1');
    const std::uint64_t id = 1 + below(200);
    switch (below(8)) {
      case 0: return static_cast<void>(database.append({one("a."), text, {}, one("p")}, world.now));
      case 1: return static_cast<void>(database.append({one("b."), text, {}, one("p")}, world.now));
      case 2: return static_cast<void>(database.push({one("m"), text, {}, one("p")}, world.now));
      case 3: return static_cast<void>(database.take({.method = one("m"), .count = 2}, world.now));
      case 4: return database.retry_job(id, world.now);
      case 5: return database.drop_job(id);
      case 6: return database.finish({.id = id, .state = Job::State::dead, .result = text}, world.now);
      default: return database.finish({.id = id, .state = Job::State::done, .result = text}, world.now);
    }
  };
  const auto counted = [&] {
    std::string all;
    for (const durable::TopicCounts& topic : world.database->list_topics())
      all +=
          std::to_string(topic.count) + ' ' + std::to_string(topic.bytes) + ' ' + std::to_string(topic.last_seq) + ';';
    for (const durable::QueueCounts& queue : world.database->list_queues()) {
      all += queue.method;
      for (const std::uint64_t count : {queue.waiting, queue.running, queue.done, queue.dead, queue.bytes})
        all += ' ' + std::to_string(count);
      all += ';';
    }
    for (const char* const principal : {"p0", "p1", "p2"}) {
      const auto is_refused = [&](const auto& act_of) {
        world.database->begin();
        bool refused = false;
        try {
          act_of();
        } catch (const Failed&) {
          refused = true;
        }
        world.database->rollback();
        return refused;
      };
      all += is_refused([&] { static_cast<void>(world.database->append({"c", {}, {}, principal}, world.now)); }) ? 'y'
                                                                                                                 : 'n';
      all +=
          is_refused([&] { static_cast<void>(world.database->push({"m", {}, {}, principal}, world.now)); }) ? 'y' : 'n';
    }
    return all + std::to_string(world.database->last_seq());
  };
  int failures = 0;
  for (int round = 0; round != 200; ++round) {
    world.now += below(10);
    bool* const fails = below(2) == 0 ? &disk.writes_fail : &disk.syncs_fail;
    *fails = below(2) == 0;
    try {
      world.database->begin();
      for (std::uint32_t left = 1 + below(8); left != 0; --left) {
        try {
          act();
        } catch (const Failed& failed) {
          if (failed.failure.kind == durable::Failure::Kind::broken) throw;
        }
      }
      if (below(8) == 0) throw Failed{};
      world.database->commit(world.now);
      if (below(4) == 0) static_cast<void>(world.database->expire(world.now));
    } catch (const Failed&) {
      ++failures;
      world.database->rollback();
    }
    *fails = false;
    const std::string before = counted();
    if (round % 10 != 0) continue;
    world.database.reset();
    world.database = std::make_unique<Database>(world.options, world.now, Opening::again);
    ASSERT_EQ(counted(), before) << round;
  }
  EXPECT_GT(failures, 50);
}

// ---- files ----

class DatabaseFile : public testing::Test {
 protected:
  std::string why_not() {
    try {
      const Database database{{.folder = folder.path()}, 0};
      return "opened";
    } catch (const std::runtime_error& error) {
      return error.what();
    }
  }
  void write(const std::string& bytes) { std::ofstream{folder.file(), std::ios::binary} << bytes; }
  bool says(std::string_view words) {
    const std::string why = why_not();
    EXPECT_NE(why.find(words), std::string::npos) << why;
    return true;
  }

  StoreFolder folder;
};

TEST_F(DatabaseFile, of_another_kind_is_left_alone) {
  const std::string text(5000, 'x');
  write(text);
  says("no store of wirecall");
  EXPECT_EQ(std::filesystem::file_size(folder.file()), text.size());
}

TEST_F(DatabaseFile, that_is_damaged_is_said_to_be) {
  {
    Database database{{.folder = folder.path()}, 0};
    database.begin();
    for (int i = 0; i != 500; ++i)
      static_cast<void>(database.append({.topic = "a", .params = std::string(100, 'x')}, 0));
    database.commit(0);
  }
  std::fstream file{folder.file(), std::ios::binary | std::ios::in | std::ios::out};
  file.seekp(8192);
  file << std::string(8192, 'x');
  file.close();
  says("restore a copy");
}

TEST_F(DatabaseFile, is_opened_by_one_process_at_a_time) {
  const Database first{{.folder = folder.path()}, 0};
  says("another process has it open");
}

TEST_F(DatabaseFile, in_a_folder_that_cannot_be_made_is_said_to_be) {
  write("x");
  StoreFolder other;
  try {
    const Database database{{.folder = folder.file() + "/below"}, 0};
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string{error.what()}.find("name a folder"), std::string::npos) << error.what();
  }
}

TEST_F(DatabaseFile, in_a_folder_that_nobody_may_write_to_is_said_to_be) {
  try {
    const Database database{{.folder = "/proc"}, 0};
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string{error.what()}.find("able to write"), std::string::npos) << error.what();
  }
}

TEST_F(DatabaseFile, of_another_version_is_refused_and_left_alone) {
  {
    const Database first{{.folder = folder.path()}, 0};
  }
  change_file(folder.file(), "PRAGMA user_version=2");
  says("another version of wirecall (2, this one reads 1)");
  change_file(folder.file(), "PRAGMA user_version=1; DROP TABLE seen");
  says("not those of this version");
}

TEST_F(DatabaseFile, whose_maker_was_killed_before_it_had_tables_is_made_anew) {
  change_file(folder.file(), "PRAGMA journal_mode=WAL");
  ASSERT_NE(std::filesystem::file_size(folder.file()), 0U);
  EXPECT_EQ(why_not(), "opened");
  change_file(folder.file(), "PRAGMA application_id=0");
  says("no store of wirecall");
}

TEST_F(DatabaseFile, and_its_folder_are_their_owners_alone) {
  const std::string path = folder.path() + "/a/data/";
  Database database{{.folder = path}, 0};
  database.begin();
  database.commit(0);
  const auto mode = [](const std::string& name) {
    struct stat found{};
    EXPECT_EQ(::stat(name.c_str(), &found), 0) << name;
    return found.st_mode & 0777U;
  };
  EXPECT_EQ(mode(path), 0700U);
  EXPECT_EQ(mode(path + "wirecall.db"), 0600U);
  EXPECT_EQ(mode(path + "wirecall.db-wal"), 0600U);
}

TEST_F(DatabaseFile, of_an_empty_store_opens_again) {
  EXPECT_EQ(why_not(), "opened");
  EXPECT_EQ(why_not(), "opened");
}

TEST(Database, deletes_a_bounded_number_of_events_for_one_and_the_rest_a_few_at_a_time) {
  DatabaseWorld world{{.folder = {}, .rules = {{.pattern = "a", .max_count = 5000}}}};
  world.change([&] {
    for (int i = 0; i != 5000; ++i)
      static_cast<void>(world.database->append({.topic = "a", .params = "[1]"}, world.now));
    return 0;
  });
  world.options.rules = {{.pattern = "a", .max_count = 10}};
  world.reopen();
  world.append("a");
  EXPECT_EQ(world.database->list_topics().at(0).count, 3001U);
  EXPECT_FALSE(world.database->expire(world.now));
  EXPECT_EQ(world.database->list_topics().at(0).count, 1001U);
  EXPECT_TRUE(world.database->expire(world.now));
  EXPECT_EQ(world.read("a").size(), 10U);
}

TEST(Database, refuses_more_while_a_topic_is_far_beyond_its_bytes) {
  DatabaseWorld world{{.folder = {}, .rules = {{.pattern = "a", .max_bytes = 90'000'000}}}};
  world.change([&] {
    for (int i = 0; i != 50'000; ++i)
      static_cast<void>(world.database->append({.topic = "a", .params = {}}, world.now));
    return 0;
  });
  world.options.rules = {{.pattern = "a", .max_bytes = 30'000'000}};
  const std::string large(29'000'000, 'x');
  world.reopen();
  for (int i = 0; i != 3; ++i) world.append("a", large);
  EXPECT_EQ(world.refusal([&] { return world.database->append({.topic = "a", .params = "[1]"}, world.now); }), "none");
  world.append("a", large);
  EXPECT_EQ(world.refusal([&] { return world.database->append({.topic = "a", .params = "[1]"}, world.now); }),
            "max_bytes");
  // A dead letter waits, and is not lost.
  const durable::Progress dead{.consumer = "c", .floor = 1, .dead = durable::NewEvent{.topic = "a", .params = "[1]"}};
  EXPECT_EQ(world.refusal([&] { return world.database->progress(dead, world.now); }), "max_bytes");
  while (!world.database->expire(world.now)) continue;
  EXPECT_EQ(world.append("a"), 50'006U);
}

}  // namespace
}  // namespace wirecall::local_store
