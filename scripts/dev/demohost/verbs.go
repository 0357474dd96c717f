package demohost

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/countersign-run/countersign/shared/terminal/supervisor"
)

// keeper answers a line of the supervisor, and reports whether it was one.
func (s *session) keeper(ctx context.Context, line string) (code int, known bool) {
	r, ok := readRequest(line)
	if !ok {
		return 0, false
	}
	for _, name := range []string{"id", "term"} {
		if value, given := r.values[name]; given && !safeName.MatchString(value) {
			return 64, true
		}
	}
	h := s.host
	switch r.verb {
	case "probe":
		s.say(r, fmt.Sprintf("os=%s\nshell=bash\nshell=sh\npty=1\nproc=1\nhome=%s\nboot=%s\nstamp=%s\nsince=%d\n",
			system, encoded(home), h.boot(), h.stamp(true), h.now().Unix()), "over")
	case "facts":
		s.facts(r)
	case "fetch":
		s.fetch(r)
	case "program":
		s.program(r)
	case "put":
		s.put(r)
	case "start":
		s.start(ctx, r)
	case "attach":
		s.attach(ctx, r)
	case "input":
		s.input(r)
	case "stop":
		h.stop(r.values["id"])
		s.say(r, "", "over")
	case "settle":
		s.settle(r)
	case "shell":
		s.console(ctx, r)
	case "resize":
		if c := h.console(r.values["term"]); c != nil {
			c.resize(r.size())
		}
		s.say(r, "", "over")
	case "close":
		h.closeConsole(r.values["term"])
		s.say(r, "", "over")
	default:
		return 64, true
	}
	return 0, true
}

// say writes an answer as the keeper does: a first line, the text, and a last line with its end.
func (s *session) say(r request, text, end string) {
	mark := r.values["mark"]
	_, _ = fmt.Fprintf(s.channel, "\n%s:begin\n%s\n%s:%s\n", mark, text, mark, end) // the client is gone
}

func (s *session) refuse(r request, why string) { s.say(r, "", "refused:"+why) }

func (s *session) start(ctx context.Context, r request) {
	h, id := s.host, r.values["id"]
	cwd, command, whole := s.received(r)
	place, command := placed(r, command)
	pinned, command := h.pinned(r, cwd, command)
	folders, paths, command := opens(r, command)
	line, unopened := h.open(folders, r.values["files"] != "", paths, command)
	if cwd == "" {
		cwd = home
	}
	to, _ := h.machine.disk.real(cwd) // an error leaves it empty
	switch info, err := h.machine.disk.stat(cwd); {
	case !h.exists(keeperDir):
		s.refuse(r, "gone")
	case !whole || id == "":
		s.refuse(r, "cut")
	case !h.same(r):
		s.refuse(r, "other")
	case err != nil || !info.IsDir():
		s.refuse(r, "cwd")
	case place != "" && place != to:
		s.refuse(r, "moved:"+encoded(to))
	case !pinned:
		s.refuse(r, "program")
	case unopened != "":
		s.refuse(r, unopened)
	default:
		if j, why := h.beginOnce(r, cwd, line); why != "" {
			s.refuse(r, why)
		} else {
			s.follow(ctx, r, j, 0)
		}
	}
}

// program reports the file that a name runs in a directory.
func (s *session) program(r request) {
	cwd, name, whole := s.received(r)
	if !whole {
		s.refuse(r, "cut")
		return
	}
	s.say(r, s.host.whichFile(cwd, name)+"\n", "over")
}

// whichFile returns the directory without links, the file that a name runs there, and the hash of a script. Programs
// are functions, which cannot change.
func (h *Host) whichFile(cwd, name string) string {
	d := h.machine.disk
	dir, err := d.real(cmp.Or(cwd, home))
	if err != nil {
		return ""
	}
	if !strings.Contains(name, "/") {
		return dir + "\n/usr/bin/" + name + "\nunreadable"
	}
	file, err := d.real(resolve(dir, name))
	if err != nil {
		return dir
	}
	return dir + "\n" + file + "\n" + d.digest(file)
}

// placed reads the place to which the directory must lead, from the first line of the request. It returns the rest of
// the request.
func placed(r request, text string) (place, rest string) {
	if r.values["placed"] == "" {
		return "", text
	}
	place, rest, _ = strings.Cut(text, "\n")
	return plainText(place), rest
}

// pinned reports whether the program is the file to which the first lines of the request pin it. It returns the rest of
// the request.
func (h *Host) pinned(r request, cwd, text string) (ok bool, rest string) {
	if r.values["pinned"] == "" {
		return true, text
	}
	name, text, _ := strings.Cut(text, "\n")
	file, rest, _ := strings.Cut(text, "\n")
	return h.whichFile(cwd, plainText(name)) == plainText(file), rest
}

// maxCommand is larger than any command that can be approved.
const maxCommand = 64 << 10

// received reads the input of start: the directory on a line, and the command up to the mark at its end.
func (s *session) received(r request) (cwd, command string, ok bool) {
	all, err := io.ReadAll(io.LimitReader(s.channel, maxCommand))
	if err != nil {
		return "", "", false
	}
	cwd, command, lined := strings.Cut(string(all), "\n")
	command, whole := strings.CutSuffix(command, r.values["mark"])
	return plainText(cwd), command, lined && whole
}

// opens reads the lines before the command, which list the files that it may read.
func opens(r request, text string) (folders []string, paths []supervisor.Path, command string) {
	for range r.number("within", 0) {
		line, rest, _ := strings.Cut(text, "\n")
		folders, text = append(folders, plainText(line)), rest
	}
	for range r.number("looks", 0) { // nothing is mounted on this machine
		_, text, _ = strings.Cut(text, "\n")
	}
	for range r.number("opens", 0) {
		line, rest, _ := strings.Cut(text, "\n")
		name, shown, _ := strings.Cut(line, " ")
		paths, text = append(paths, supervisor.Path{Name: plainText(name), Shown: plainText(shown)}), rest
	}
	return folders, paths, text
}

// plainText decodes text that the keeper's Go side has written in octal digits.
func plainText(s string) string {
	return octalDigits.ReplaceAllStringFunc(s, func(o string) string {
		n, _ := strconv.ParseUint(strings.TrimLeft(o, `\`), 8, 8) // three octal digits
		return string([]byte{byte(n)})
	})
}

// attach shows a command that another connection has started, or that has ended.
func (s *session) attach(ctx context.Context, r request) {
	h, id, from := s.host, r.values["id"], r.number("from", 0)
	h.claims.Lock() // a command that is just starting is a job then
	j := h.job(id)
	h.claims.Unlock()
	if j != nil {
		s.follow(ctx, r, j, from)
		return
	}
	if !h.exists(journalDir(id)) {
		s.refuse(r, "absent")
		return
	}
	out, _ := h.machine.disk.readFile(path.Join(journalDir(id), "out"))   // it may have printed nothing, or long ago
	rest, _ := h.machine.disk.readFile(path.Join(journalDir(id), "rest")) // as above
	_, _ = fmt.Fprintf(s.channel, "\n%s:begin\n%s", r.values["mark"], out[min(len(out), from):])
	s.finish(r, id, rest[min(len(rest), max(0, from-firstKept)):])
}

// follow shows a command's output from a byte on, until it ends or the client has gone.
func (s *session) follow(ctx context.Context, r request, j *job, from int) {
	mark := r.values["mark"]
	if r.values["hold"] != "" {
		j.held.Add(1)
		defer j.held.Add(-1)
	}
	stop := context.AfterFunc(ctx, j.out.wake)
	defer stop()
	if _, err := fmt.Fprintf(s.channel, "\n%s:begin\n", mark); err != nil {
		return
	}
	at, asked := min(from, firstKept), false
	for {
		p, over := j.out.next(at, func() bool { return ctx.Err() != nil || j.asking.Load() != asked })
		if _, err := s.channel.Write(p); err != nil || ctx.Err() != nil {
			return
		}
		at += len(p)
		if now := j.asking.Load(); now != asked {
			asked = now
			fmt.Fprintf(s.channel.Stderr(), "%s:asks:%s\n", mark, map[bool]string{true: "1"}[asked])
			continue
		}
		if over {
			break
		}
	}
	j.out.mu.Lock()
	rest := j.out.rest()
	j.out.mu.Unlock()
	s.finish(r, j.id, rest[min(len(rest), max(0, from-firstKept)):])
}

// finish shows the last part of a command's output, and how it ended.
func (s *session) finish(r request, id string, rest []byte) {
	end := "refused:lost"
	if e, ok := s.host.ended(id); ok {
		end = e.line()
	} else if s.host.exists(path.Join(journalDir(id), "never")) {
		end = "refused:never"
	}
	_, _ = s.channel.Write(rest)                                      // the client is gone
	_, _ = fmt.Fprintf(s.channel, "\n%s:%s\n", r.values["mark"], end) // as above
}

// input passes the user's keys to a running command, and echoes them as a terminal does.
func (s *session) input(r request) {
	h, id := s.host, r.values["id"]
	j := h.job(id)
	if j == nil {
		why := "absent" // keys may arrive before the command
		if _, over := h.ended(id); over || h.exists(path.Join(journalDir(id), "never")) {
			why = "ended"
		}
		s.refuse(r, why)
		return
	}
	buf := make([]byte, 4096)
	for {
		n, err := s.channel.Read(buf)
		j.press(buf[:n])
		if err != nil {
			break
		}
	}
	s.say(r, "", "over")
}

// settle reports the outcome of a command.
func (s *session) settle(r request) {
	state, end := s.host.settle(r)
	s.say(r, "state="+state+"\n", end)
}
