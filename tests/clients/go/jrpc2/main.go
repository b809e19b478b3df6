// jrpc2: calls both ways, errors, notifications and batches, as lines over a unix socket and behind Content-Length over
// TCP.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/creachadair/jrpc2"
	"github.com/creachadair/jrpc2/channel"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func require(holds bool, what ...any) {
	if !holds {
		panic(fmt.Sprint(what...))
	}
}

func check(ctx context.Context, network, address string, framing channel.Framing) {
	conn, err := net.Dial(network, address)
	must(err)
	client := jrpc2.NewClient(framing(conn, conn), &jrpc2.ClientOptions{
		OnCallback: func(_ context.Context, request *jrpc2.Request) (any, error) {
			var question []string
			must(request.UnmarshalParams(&question))
			return "to " + question[0], nil
		},
	})
	var difference int
	must(client.CallResult(ctx, "subtract", []int{42, 23}, &difference))
	require(difference == 19, difference)
	must(client.CallResult(ctx, "subtract", map[string]int{"minuend": 5, "subtrahend": 3}, &difference))
	require(difference == 2, difference)
	must(client.Notify(ctx, "echo", []string{"nobody waits"}))
	var answer string
	must(client.CallResult(ctx, "ask", []string{"a question"}, &answer))
	require(answer == "to a question", answer)
	_, err = client.Call(ctx, "fail", []any{7, "as asked"})
	require(jrpc2.ErrorCode(err) == 7, err)
	_, err = client.Call(ctx, "subtract", []any{"x", 1})
	var refused *jrpc2.Error
	require(errors.As(err, &refused) && refused.Code == jrpc2.InvalidParams, err)
	var data struct{ Loc []string }
	must(json.Unmarshal(refused.Data, &data))
	require(len(data.Loc) == 1 && data.Loc[0] == "minuend", data)

	specs := make([]jrpc2.Spec, 100)
	for i := range specs {
		specs[i] = jrpc2.Spec{Method: "subtract", Params: []int{i, 1}}
	}
	responses, err := client.Batch(ctx, specs)
	must(err)
	for i, response := range responses {
		must(response.UnmarshalResult(&difference))
		require(difference == i-1, difference)
	}
	for len(specs) < 1001 {
		specs = append(specs, specs[0])
	}
	responses, err = client.Batch(ctx, specs)
	must(err)
	require(len(responses) == 1001, len(responses))
	for _, response := range responses {
		var data struct{ Limit string }
		require(response.Error() != nil && response.Error().Code == jrpc2.InvalidRequest, response)
		must(json.Unmarshal(response.Error().Data, &data))
		require(data.Limit == "batch", data)
	}
	must(client.CallResult(ctx, "subtract", []int{42, 23}, &difference))
	require(difference == 19, difference)
	must(client.Close())
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Second)
	defer cancel()
	check(ctx, "unix", os.Getenv("UNIX_PATH"), channel.Line)
	check(ctx, "tcp", "127.0.0.1:"+os.Getenv("TCP_PORT"), channel.LSP)
}
