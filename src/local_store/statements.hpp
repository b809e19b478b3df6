// The statements of a Database, prepared once. Behind its connection, which they go before.
#pragma once

#include "local_store/database.hpp"
#include "local_store/statement.hpp"

namespace wirecall::local_store {

struct Database::Statements {
  explicit Statements(sqlite3* database) : database(database) {}

  sqlite3* const database;
  Statement begin{database, "BEGIN IMMEDIATE"};
  Statement commit{database, "COMMIT"};
  Statement rollback{database, "ROLLBACK"};
  Statement save_time{database, "UPDATE clock SET ms=?1"};
  Statement save_stream{database, "UPDATE stream SET count=?2, bytes=?3, last_seq=?4 WHERE id=?1"};

  Statement save_usage{database, "INSERT OR REPLACE INTO usage(principal,events,bytes) VALUES(?1,?2,?3)"};
  Statement remove_usage{database, "DELETE FROM usage WHERE principal=?1"};

  Statement add_event{database,
                      "INSERT INTO event(seq,stream,at,size,topic,params,principal) VALUES(?1,?2,?3,?4,?5,?6,?7)"};
  Statement read_events{database, "SELECT seq,at,topic,params FROM event WHERE seq>?1 ORDER BY seq"};
  Statement oldest_event{database, "SELECT seq,at,size,principal FROM event WHERE stream=?1 ORDER BY seq LIMIT 1"};
  Statement remove_event{database, "DELETE FROM event WHERE seq=?1"};
  Statement find_seen{database, "SELECT number FROM seen WHERE scope=?1 AND msg_id=?2"};
  Statement add_seen{database, "INSERT OR REPLACE INTO seen(scope,msg_id,number,at) VALUES(?1,?2,?3,?4)"};
  Statement expire_seen{
      database,
      "DELETE FROM seen WHERE (scope,msg_id) IN (SELECT scope,msg_id FROM seen WHERE at<?1 ORDER BY at LIMIT ?2)"};

  Statement find_consumer{database,
                          "SELECT pattern,floor,ack_wait,max_deliver,max_in_flight,principal FROM consumer "
                          "WHERE name=?1"};
  Statement count_consumers{database, "SELECT count(*) FROM consumer WHERE principal=?1"};
  Statement list_consumers{database,
                           "SELECT name,pattern,floor,ack_wait,max_deliver,max_in_flight,principal FROM consumer "
                           "ORDER BY name"};
  Statement save_consumer{database,
                          "INSERT OR REPLACE INTO consumer(name,pattern,floor,ack_wait,max_deliver,max_in_flight,"
                          "principal) VALUES(?1,?2,?3,?4,?5,?6,?7)"};
  Statement move_floor{database, "UPDATE consumer SET floor=max(floor,?2) WHERE name=?1"};
  Statement remove_consumer{database, "DELETE FROM consumer WHERE name=?1"};
  Statement read_tried{database, "SELECT seq,deliveries,acknowledged FROM tried WHERE consumer=?1 ORDER BY seq"};
  Statement save_tried{database,
                       "INSERT OR REPLACE INTO tried(consumer,seq,deliveries,acknowledged) VALUES(?1,?2,?3,?4)"};
  Statement forget_tried{database, "DELETE FROM tried WHERE consumer=?1 AND seq<=?2"};

  Statement add_job{database,
                    "INSERT INTO job(method,state,due,at,principal,deliveries,max_deliver,params,result,timeout) "
                    "VALUES(?1,0,?2,?3,?4,0,?5,?6,x'',?7)"};
  Statement due_jobs{database,
                     "SELECT id,method,params,state,deliveries,max_deliver,at,result,timeout,principal FROM job "
                     "WHERE method=?1 AND state=0 AND due<=?2 ORDER BY due,id LIMIT ?3"};
  Statement next_due{database, "SELECT due FROM job WHERE method=?1 AND state=0 ORDER BY due LIMIT 1"};
  Statement start_job{database, "UPDATE job SET state=1, deliveries=deliveries+1 WHERE id=?1"};
  Statement end_job{database, "UPDATE job SET state=?2, due=?3, deliveries=deliveries-?4, result=?5 WHERE id=?1"};
  Statement read_job{database,
                     "SELECT id,method,x'',state,deliveries,max_deliver,at,result,timeout,principal FROM job "
                     "WHERE id=?1"};
  Statement size_job{database, "SELECT method,principal,state,length(params),length(result) FROM job WHERE id=?1"};
  Statement peek_jobs{database,
                      "SELECT id,method,params,state,deliveries,max_deliver,at,result,timeout,principal FROM job "
                      "WHERE method=?1 AND state=?2 AND id>?3 ORDER BY id LIMIT ?4"};
  Statement peek_own_jobs{database,
                          "SELECT id,method,params,state,deliveries,max_deliver,at,result,timeout,principal FROM job "
                          "WHERE method=?1 AND state=?2 AND id>?3 AND principal=?5 ORDER BY id LIMIT ?4"};
  Statement renew_job{database, "UPDATE job SET state=0, due=?2, deliveries=0 WHERE id=?1"};
  Statement remove_job{database, "DELETE FROM job WHERE id=?1"};
  Statement oldest_done{database, "SELECT id FROM job WHERE method=?1 AND state=2 ORDER BY due,id LIMIT 1"};
  Statement old_done{database, "SELECT id FROM job WHERE state=2 AND due<?1 ORDER BY due LIMIT ?2"};
};

}  // namespace wirecall::local_store
