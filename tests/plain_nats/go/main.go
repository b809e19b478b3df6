// What nats.go and its package micro see of brokers: `plain_nats URL SERVICE METHOD`. It calls the method with [2, 3] by a
// request, and finds the nodes as micro services.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
)

const wait = 20 * time.Second

func require(holds bool, what ...any) {
	if !holds {
		fmt.Fprintln(os.Stderr, what...)
		os.Exit(1)
	}
}

func until(what string, holds func() bool) {
	for end := time.Now().Add(wait); !holds(); time.Sleep(10 * time.Millisecond) {
		require(time.Now().Before(end), "not in time:", what)
	}
}

// All answers to a search for services, of which there are `count`.
func look[Answer any](connection *nats.Conn, verb micro.Verb, name string, count int) []Answer {
	subject, err := micro.ControlSubject(verb, name, "")
	require(err == nil, err)
	inbox := connection.NewInbox()
	answers, err := connection.SubscribeSync(inbox)
	require(err == nil, err)
	defer answers.Unsubscribe()
	require(connection.PublishRequest(subject, inbox, nil) == nil, "publish", subject)
	found := make([]Answer, count)
	for i := range found {
		message, err := answers.NextMsg(wait)
		require(err == nil, subject, err)
		err = json.Unmarshal(message.Data, &found[i])
		require(err == nil, subject, err, string(message.Data))
	}
	return found
}

func main() {
	url, name, method := os.Args[1], os.Args[2], os.Args[3]
	connection, err := nats.Connect(url)
	require(err == nil, err)
	defer connection.Close()

	request := fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":[2,3],"id":"go"}`, method)
	message, err := connection.Request("wc.shop.m."+method, []byte(request), wait)
	require(err == nil, err)
	var answer struct {
		Result int    `json:"result"`
		ID     string `json:"id"`
	}
	err = json.Unmarshal(message.Data, &answer)
	require(err == nil && answer.Result == 5 && answer.ID == "go", string(message.Data))

	for _, ping := range look[micro.Ping](connection, micro.PingVerb, name, 2) {
		require(ping.Type == micro.PingResponseType && ping.Name == name && ping.Version != "", ping)
	}
	// A node's answer may be a second old.
	until("the method is an endpoint of two nodes", func() bool {
		subjects := 0
		for _, info := range look[micro.Info](connection, micro.InfoVerb, name, 2) {
			require(info.Type == micro.InfoResponseType && info.Metadata["node"] == info.ID, info)
			for _, endpoint := range info.Endpoints {
				if endpoint.Subject == "wc.shop.m."+method && endpoint.Metadata["method"] == method {
					subjects++
				}
			}
		}
		return subjects == 2
	})
	until("the method was called once", func() bool {
		requests := 0
		for _, stats := range look[micro.Stats](connection, micro.StatsVerb, name, 2) {
			require(stats.Type == micro.StatsResponseType && time.Since(stats.Started) < time.Hour, stats)
			for _, endpoint := range stats.Endpoints {
				if endpoint.Subject == "wc.shop.m."+method {
					requests += endpoint.NumRequests
				}
			}
		}
		return requests == 1
	})
	fmt.Println("passed")
}
