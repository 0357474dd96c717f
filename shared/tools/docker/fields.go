package docker

import "strings"

// engines are the names of options with which Docker's API, command line and libraries grant something to a container.
// They are in lower case without dashes. Options that this tool has too are left out.
var engines = func() map[string]bool {
	all := map[string]bool{}
	for name := range strings.FieldsSeq(engineFields) {
		all[name] = true
	}
	return all
}()

func normalName(name string) string {
	return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(name))
}

// engineFields are the fields of Config, HostConfig, Resources and NetworkingConfig of the API (a test compares them),
// and the flags of docker run.
const engineFields = `
hostname domainname user attachstdin attachstdout attachstderr exposedports tty openstdin stdinonce cmd healthcheck
argsescaped volumes workingdir entrypoint networkdisabled macaddress onbuild labels stopsignal stoptimeout shell
hostconfig networkingconfig platform name
binds containeridfile logconfig networkmode portbindings restartpolicy autoremove volumedriver volumesfrom consolesize
annotations capadd capdrop cgroupnsmode dns dnsoptions dnssearch extrahosts groupadd ipcmode cgroup links oomscoreadj
pidmode privileged publishallports readonlyrootfs securityopt storageopt tmpfs utsmode usernsmode shmsize sysctls
runtime isolation mounts maskedpaths readonlypaths init umask
cpushares nanocpus cgroupparent blkioweight blkioweightdevice blkiodevicereadbps blkiodevicewritebps
blkiodevicereadiops blkiodevicewriteiops cpuperiod cpuquota cpurealtimeperiod cpurealtimeruntime cpusetcpus cpusetmems
devices devicecgrouprules devicerequests memoryreservation memoryswap memoryswappiness oomkilldisable pidslimit ulimits
cpucount cpupercent iomaximumiops iomaximumbandwidth kernelmemory kernelmemorytcp endpointsconfig
addhost blkioweight capadd cpus detach device dnsopt dnsoption envfile expose gpus groupadd healthcmd interactive ip ip6 ipc
label link logdriver logopt mount net network networkalias pid pids publish ports pull readonly restart rm secret
secrets securityopts sysctl tmp ulimit uts userns volume workdir`
