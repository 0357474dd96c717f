package docker

import (
	"context"
	"fmt"
	"io"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
	"github.com/countersign-run/countersign/shared/tools/container"
)

// outletProgram is the program in the image through which an installer reaches the package hosts (package outlet).
const outletProgram = "/usr/local/bin/countersign-outlet"

// fetchMark is the file that is written to a volume last.
const fetchMark = deps + "/.countersign-fetched"

// ready reports by its exit code whether a container can install dependencies.
const ready = `[ -x ` + outletProgram + ` ] || exit 10
[ -w ` + deps + ` ] || exit 11
[ ! -e ` + fetchMark + ` ] || exit 12
mkdir -p ` + source + ` ` + out

// install runs the command $1, and replaces the content of the volume with the installed files.
const install = `cd ` + source + ` && ` + outletProgram + ` /bin/sh -c "$1" && cd ` + deps + ` && rm -rf ./* &&
cp -R ` + out + `/. ` + deps + `/ && : >` + fetchMark

// fill installs the dependencies into the volume of a container, unless it has them.
func (t *tools) fill(ctx context.Context, e Engine, id string, files []container.Entry, b *FetchBase) (Fetched, error) {
	ctx, cancel := context.WithTimeout(ctx, MaxLimit)
	defer cancel()
	exit, err := e.Feed(ctx, id, []string{"/bin/sh", "-c", ready}, nil)
	switch {
	case err != nil:
		return Fetched{}, tool.Ambiguous(err)
	case exit == 10:
		return Fetched{}, fault.New(fault.Tool, "no_outlet", "The image has no %s, without which its network cannot "+
			"be limited to the package hosts. Nothing was fetched.", outletProgram)
	case exit == 11:
		return Fetched{}, fault.New(fault.Tool, "no_volume", "The image has no %s that the user 1000 can write to. "+
			"Nothing was fetched.", deps)
	case exit == 12:
		return Fetched{Output: "They had been fetched before."}, nil
	case exit != 0:
		return Fetched{}, fault.New(fault.Tool, CodeExit, "The image has no shell, or no space is left. "+
			"Nothing was fetched.")
	}
	last := len(files) - 1
	archive, err := container.Snapshot{Entries: files[:last]}.Archive(files[last])
	if err != nil {
		return Fetched{}, err
	}
	if exit, err := e.Feed(ctx, id, []string{"tar", "-xf", "-", "-C", container.Work}, archive); err != nil {
		return Fetched{}, tool.Ambiguous(err)
	} else if exit != 0 {
		return Fetched{}, fault.New(fault.Tool, codeNoTar, "The lock file could not be unpacked in the container: its "+
			"image has no tar.")
	}
	return t.install(ctx, e, id, b.Command)
}

// install runs the installer. Its standard input and output are its only connection to the outside.
func (t *tools) install(ctx context.Context, e Engine, id, command string) (Fetched, error) {
	asked, ask := io.Pipe()
	answered, answer := io.Pipe()
	refused := make(chan []string, 1)
	go func() { refused <- t.Packages.Serve(ctx, asked, answer) }()
	var printed supervisor.Kept
	exit, err := e.Converse(ctx, id, []string{"/bin/sh", "-c", install, "countersign", command}, answered,
		container.Streams{Stdout: ask, Stderr: &printed})
	_, _ = ask.Close(), answered.Close() // neither fails, and both end the connection
	got := Fetched{Refused: <-refused}
	got.Output, _ = textOf(&printed)
	switch {
	case ctx.Err() != nil:
		return Fetched{}, tool.Partial(got, fault.New(fault.Tool, CodeTimeout, "It was ended because it took longer "+
			"than %d seconds.", int(MaxLimit.Seconds())))
	case err != nil:
		return Fetched{}, tool.Ambiguous(err)
	case exit != 0:
		return Fetched{}, tool.Partial(got, fault.New(fault.Tool, CodeExit, "The installer ended with the exit code "+
			"%d%s. Nothing was kept.", exit, refusals(got.Refused)))
	}
	return got, nil
}

func refusals(hosts []string) string {
	if len(hosts) == 0 {
		return ""
	}
	return fmt.Sprintf(", and asked for hosts that DOCKER_PACKAGE_HOSTS does not name: %q", hosts)
}
