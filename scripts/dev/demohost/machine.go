package demohost

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// The machine's description of itself.
const (
	hostname = "demo"
	user     = "root"
	home     = "/root"
	kernel   = "6.12.41-demo-amd64"
	system   = "Linux 6.12.41-demo-amd64" // uname -sr
)

// machine is the simulated machine: a disk in a folder, processes, services and packages.
type machine struct {
	disk *disk
	file string // where the state is kept
	now  func() time.Time

	mu      sync.Mutex
	state   state
	running map[int]*process // processes of users who are logged in
}

// state is the machine's stored state.
type state struct {
	Boot     string             `json:"boot"`
	Booted   time.Time          `json:"booted"`
	NextPID  int                `json:"nextPID"`
	Services map[string]service `json:"services"`
	Packages []string           `json:"packages"` // installed packages, in addition to the initial ones
}

// service is a unit of systemd.
type service struct {
	Description string    `json:"description"`
	Command     string    `json:"command"`
	User        string    `json:"user"`
	PID         int       `json:"pid"` // 0: it does not run
	Failed      bool      `json:"failed,omitempty"`
	Since       time.Time `json:"since"`
	RSS         int       `json:"rss"` // MiB
}

// process is a running process.
type process struct {
	pid     int
	user    string
	command string
	started time.Time
	rss     int // MiB
	end     func()
}

func openMachine(dir string, now func() time.Time) (*machine, error) {
	folder := filepath.Join(dir, "disk")
	_, err := os.Stat(folder)
	fresh := errors.Is(err, fs.ErrNotExist)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	m := &machine{disk: &disk{root: root, most: maxWritten}, file: filepath.Join(dir, "machine.json"), now: now,
		running: map[int]*process{}}
	if err := m.load(); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	if fresh {
		if err := m.furnish(); err != nil {
			return nil, errors.Join(err, root.Close(), os.RemoveAll(folder))
		}
	}
	return m, nil
}

func (m *machine) load() error {
	data, err := os.ReadFile(m.file)
	if err == nil {
		return json.Unmarshal(data, &m.state)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	up := m.now().Add(-41*24*time.Hour - 3*time.Hour)
	m.state = state{Boot: rand.Text(), Booted: up, NextPID: 2950, Services: map[string]service{
		"nginx": {"A high performance web server and a reverse proxy server", "nginx: master process /usr/sbin/nginx",
			"root", 812, false, up, 14},
		"ssh":        {"OpenBSD Secure Shell server", "sshd: /usr/sbin/sshd -D", "root", 701, false, up, 9},
		"cron":       {"Regular background program processing daemon", "/usr/sbin/cron -f", "root", 655, false, up, 4},
		"postgresql": {"PostgreSQL RDBMS", "postgres: 17/main", "postgres", 744, false, up, 118},
		"shop":       {"The example shop", "node /srv/shop/server.js", "www-data", 1190, false, up, 203},
		"backup-upload": {"Upload of the nightly backup", "/usr/local/bin/backup-upload", "root", 0, true,
			m.now().Add(-90 * time.Minute), 0},
	}}
	return m.save()
}

// save stores the state in a new file, which replaces the old one.
func (m *machine) save() error {
	data, err := json.MarshalIndent(m.state, "", "\t")
	if err != nil {
		return err
	}
	if err := os.WriteFile(m.file+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(m.file+".new", m.file)
}

// change changes the state, durably.
func (m *machine) change(f func(*state)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(&m.state)
	return m.save()
}

func (m *machine) service(name string) (service, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.state.Services[name]
	return s, ok
}

func (m *machine) services() map[string]service {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.state.Services)
}

// has reports whether a program is installed. Some programs need a package.
func (m *machine) has(program string) bool {
	pack, packed := packaged[program]
	return !packed || m.installed(pack)
}

func (m *machine) installed(pack string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Contains(m.state.Packages, pack)
}

func (m *machine) booted() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state.Booted
}

// started adds a process that ends when done is called.
func (m *machine) started(command string, end func()) (pid int, done func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state.NextPID++ // stored with the next change: a restarted machine may reuse a number
	pid = m.state.NextPID
	m.running[pid] = &process{pid, user, command, m.now(), 3, end}
	return pid, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.running, pid)
	}
}

// processes returns the running processes by ID.
func (m *machine) processes() []process {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := []process{{1, "root", "/sbin/init", m.state.Booted, 12, nil}}
	for _, s := range m.state.Services {
		if s.PID == 0 {
			continue
		}
		list = append(list, process{s.PID, s.User, s.Command, s.Since, s.RSS, nil})
		if s.Command == nginxMaster {
			for i := range 2 {
				list = append(list, process{s.PID + 1 + i, "www-data", "nginx: worker process", s.Since, 7, nil})
			}
		}
	}
	for _, p := range m.running {
		list = append(list, *p)
	}
	slices.SortFunc(list, func(a, b process) int { return a.pid - b.pid })
	return list
}

const nginxMaster = "nginx: master process /usr/sbin/nginx"

// kill ends a process. It returns false if the process does not exist.
func (m *machine) kill(pid int) (found bool, err error) {
	m.mu.Lock()
	p, running := m.running[pid]
	m.mu.Unlock()
	if running {
		p.end()
		return true, nil
	}
	for name, s := range m.services() {
		if s.PID == pid && pid != 0 {
			return true, errors.Join(m.turn(name, false), m.log("systemd[1]: %s.service: Main process exited, "+
				"code=killed, status=15/TERM", name))
		}
	}
	return false, nil
}

// turn starts or stops a service.
func (m *machine) turn(name string, on bool) error {
	return m.change(func(s *state) {
		unit := s.Services[name]
		unit.PID, unit.Failed, unit.Since = 0, false, m.now()
		if on {
			s.NextPID += 3
			unit.PID = s.NextPID - 2
		}
		s.Services[name] = unit
	})
}

// syslog is the machine's log, and the journal of its services.
const syslog = "/var/log/syslog"

// log adds a line to the machine's log.
func (m *machine) log(format string, args ...any) error {
	f, err := m.disk.open(syslog, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s %s\n", m.now().Format("Jan _2 15:04:05")+" "+hostname, fmt.Sprintf(format, args...))
	return errors.Join(err, f.Close())
}
