package hostile

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/countersign-run/countersign/shared/tools/docker"
)

// builder is the agent that works in containers.
const builder = "name: builder\ninstruction: You build.\ntools: [" + docker.Create + ", " + docker.Script + "]\n"

// building runs a case of a tool that works in containers. No engine listens at the configured address, so the call
// must be refused before an engine is asked.
func building(s *env) got {
	agents := filepath.Join(s.dir, "agents")
	s.must(os.Mkdir(agents, 0o700))
	s.must(os.WriteFile(filepath.Join(agents, "builder.agent.yaml"), []byte(builder), 0o600))
	s.open(nil, "DOCKER_HOST=unix://"+filepath.Join(s.dir, "none.sock"), "DOCKER_IMAGES=localhost/busybox:1",
		"AGENTS="+agents)
	args, _ := s.take("args")
	name := strings.TrimPrefix(s.c.Target, "tool:")
	s.w.SetModel(once(name, args))
	asked := s.call(s.as, "POST", "/api/agent/run", `{"prompt": "Please do it.", "agent": "builder"}`)
	return s.judged(name, args, asked, 0)
}
