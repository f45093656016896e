package main
import ("fmt";"os";"time";"syscall";"runtime/pprof";"github.com/detent-go/detent/timer";"sync")
func cpu() time.Duration { var r syscall.Rusage; syscall.Getrusage(0,&r); return time.Duration(r.Utime.Nano()+r.Stime.Nano()) }
func main(){
  const N=40000
  var wg sync.WaitGroup; wg.Add(N)
  f:=func(){ wg.Done() }
  mode:=os.Args[1]
  for i:=0;i<N;i++{ d:=time.Second+time.Duration(i)*50*time.Microsecond
    switch mode { case "d": timer.AfterFunc(d,f); case "e": timer.Default().WithSlack(0).AfterFunc(d,f); case "s": time.AfterFunc(d,f)} }
  time.Sleep(900*time.Millisecond)
  var r0,r1 syscall.Rusage; syscall.Getrusage(0,&r0)
  c:=cpu(); w0:=timer.Default().Stats().Wakeups
  if len(os.Args)>2 { fl,_:=os.Create(os.Args[2]); pprof.StartCPUProfile(fl) }
  wg.Wait()
  if len(os.Args)>2 { pprof.StopCPUProfile() }
  syscall.Getrusage(0,&r1)
  fmt.Println(mode, cpu()-c, "utime",time.Duration(r1.Utime.Nano()-r0.Utime.Nano()),"wakeups",timer.Default().Stats().Wakeups-w0,"nvcsw",r1.Nvcsw-r0.Nvcsw,"niv",r1.Nivcsw-r0.Nivcsw)
}
