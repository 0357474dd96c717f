// Command earlier serves all functions of the release in whose sources it is built. TestEarlierRelease builds it in the
// worktree of an earlier commit. It uses only what testkit has had since that commit.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/testkit"
)

func main() {
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, "earlier:", err)
		os.Exit(1)
	}
}

// serve serves until its input ends, with the settings of the variable BE_RELEASE, and with a clock that is ahead.
func serve() error {
	var settings map[string]string
	if err := json.Unmarshal([]byte(os.Getenv("BE_RELEASE")), &settings); err != nil {
		return err
	}
	ahead, err := time.ParseDuration(cmp.Or(settings["AHEAD"], "0s"))
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	settings["PUBLIC_URL"] = "http://" + ln.Addr().String()
	_, stop, err := testkit.Serve(context.Background(), ln, func(name string) string { return settings[name] },
		os.Stderr, nil, app.WithClock(func() time.Time { return time.Now().Add(ahead) }))
	if err != nil {
		return err
	}
	fmt.Println(settings["PUBLIC_URL"])
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, stop())
}
