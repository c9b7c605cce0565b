# Stands in for Vivado's block designs: cells with the pins that their parameters give them, and nets that know
# what they join.  What does not exist, is driven twice or is left open is an error, as in Vivado.

namespace eval block {
    variable vlnv {} parameters {} driver {} bus {} segments {}
    # What may be set, by IP.
    variable known
    array set known {
        zynq_ultra_ps_e {
            PSU__USE__M_AXI_GP[012] PSU__USE__S_AXI_GP[2345] PSU__SAXIGP[2345]__DATA_WIDTH PSU__USE__IRQ0
            PSU__FPGA_PL0_ENABLE PSU__CRL_APB__PL0_REF_CTRL__FREQMHZ
        }
        clk_wiz {CLKOUT1_REQUESTED_OUT_FREQ USE_LOCKED USE_RESET RESET_TYPE}
        proc_sys_reset {}
        smartconnect {NUM_SI NUM_MI}
    }
}

proc block::parameter {cell name {default 0}} {
    variable parameters
    return [expr {[dict exists $parameters $cell $name] ? [dict get $parameters $cell $name] : $default}]
}

# Pins of a cell as {name direction} pairs: in must be driven, out drives, master and slave are interfaces.
proc block::pins {cell} {
    variable vlnv
    global interfaces
    set kind [lindex [split [dict get $vlnv $cell] :] 2]
    set pins {}
    switch $kind {
        zynq_ultra_ps_e {
            lappend pins pl_clk0 out pl_resetn0 out
            if {[parameter $cell PSU__USE__IRQ0]} { lappend pins pl_ps_irq0 in }
            # The board's preset has both full-power masters.
            foreach {gp port} {0 hpm0 1 hpm1} {
                if {[parameter $cell PSU__USE__M_AXI_GP$gp 1]} {
                    lappend pins maxi${port}_fpd_aclk in M_AXI_[string toupper $port]_FPD master
                }
            }
            foreach {gp hp} {2 0 3 1 4 2 5 3} {
                if {[parameter $cell PSU__USE__S_AXI_GP$gp]} {
                    lappend pins saxihp${hp}_fpd_aclk in S_AXI_HP${hp}_FPD slave
                }
            }
        }
        clk_wiz {
            lappend pins clk_in1 in clk_out1 out locked out
            lappend pins [expr {[parameter $cell RESET_TYPE] eq "ACTIVE_LOW" ? "resetn" : "reset"}] in
        }
        proc_sys_reset {
            lappend pins slowest_sync_clk in ext_reset_in in dcm_locked in
            lappend pins peripheral_aresetn out interconnect_aresetn out
        }
        smartconnect {
            lappend pins aclk in aresetn in
            for {set n 0} {$n < [parameter $cell NUM_SI]} {incr n} { lappend pins [format S%02d_AXI $n] slave }
            for {set n 0} {$n < [parameter $cell NUM_MI]} {incr n} { lappend pins [format M%02d_AXI $n] master }
        }
        default {
            lappend pins ap_clk in ap_rst_n in interrupt out
            foreach name $::kernel_interfaces {
                lappend pins $name [expr {[string match m_* $name] ? "master" : "slave"}]
            }
        }
    }
    return $pins
}

proc block::direction {path} {
    lassign [split $path /] cell pin
    variable vlnv
    if {![dict exists $vlnv $cell] || ![dict exists [pins $cell] $pin]} { error "no pin $path" }
    return [dict get [pins $cell] $pin]
}

proc get_board_parts {args} {
    global board_parts
    if {[lrange $args 0 1] ne {-quiet -latest_file_version}} { error "get_board_parts $args" }
    return [lsearch -all -inline $board_parts [lindex $args 2]]
}
proc current_project {} { return project }
proc update_ip_catalog {} { call update_ip_catalog }
proc create_bd_design {name} { call create_bd_design $name }

proc create_bd_cell {args} {
    if {[lindex $args 0] ne "-type" || [lindex $args 1] ne "ip" || [lindex $args 2] ne "-vlnv"} { error $args }
    call create_bd_cell {*}$args
    dict set block::vlnv [lindex $args 4] [lindex $args 3]
    return [lindex $args 4]
}
proc apply_bd_automation {args} { call apply_bd_automation {*}$args }

proc block::set_dict {settings cell} {
    variable known
    variable vlnv
    variable parameters
    set kind [lindex [split [dict get $vlnv $cell] :] 2]
    foreach {name value} $settings {
        if {![string match CONFIG.* $name]} { error "$name is no parameter" }
        set name [string range $name 7 end]
        set found 0
        foreach pattern $known($kind) { incr found [string match $pattern $name] }
        if {!$found} { error "$kind has no parameter $name" }
        dict set parameters $cell $name $value
    }
}

proc get_bd_pins {path} {
    if {[block::direction $path] ni {in out}} { error "no pin $path" }
    return $path
}
proc get_bd_intf_pins {path} {
    if {[block::direction $path] ni {master slave}} { error "no interface $path" }
    return $path
}

proc connect_bd_net {source sink} {
    call connect_bd_net $source $sink
    if {[block::direction $source] ne "out"} { error "$source drives nothing" }
    if {[block::direction $sink] ne "in"} { error "$sink is no input" }
    if {[dict exists $block::driver $sink]} { error "$sink is driven already" }
    dict set block::driver $sink $source
}
proc connect_bd_intf_net {master slave} {
    call connect_bd_intf_net $master $slave
    if {[block::direction $master] ne "master" || [block::direction $slave] ne "slave"} {
        error "$master and $slave do not fit"
    }
    foreach path [list $master $slave] {
        if {[dict exists $block::bus $path]} { error "$path is connected already" }
        dict set block::bus $path 1
    }
}

proc get_bd_addr_spaces {path} {
    if {$path ne "ps/Data" && [block::direction $path] ne "master"} { error "no address space $path" }
    return $path
}
proc get_bd_addr_segs {path} {
    if {[regexp {^ps/SAXIGP(\d)/HP(\d)_DDR_LOW$} $path whole gp hp]} {
        if {$gp != $hp + 2 || [block::direction ps/S_AXI_HP${hp}_FPD] ne "slave"} { error "no segment $path" }
    } elseif {$path ne "kernel/s_axi_control/reg0"} { error "no segment $path" }
    return $path
}
proc assign_bd_address {args} {
    call assign_bd_address {*}$args
    set space [lindex $args [expr {[lsearch $args -target_address_space] + 1}]]
    dict set block::segments $space [lindex $args end]
}

# Nothing that must be driven, connected or mapped is left out.
proc validate_bd_design {} {
    call validate_bd_design
    foreach cell [dict keys $block::vlnv] {
        dict for {pin direction} [block::pins $cell] {
            set path $cell/$pin
            if {$direction eq "in" && ![dict exists $block::driver $path]} { error "$path is not driven" }
            if {$direction in {master slave} && ![dict exists $block::bus $path]} { error "$path is not connected" }
            if {$direction eq "master" && $cell eq "kernel" && ![dict exists $block::segments $path]} {
                error "$path has no addresses"
            }
        }
    }
}
proc save_bd_design {} { call save_bd_design }
proc get_files {name} { return $name }

proc make_wrapper {args} {
    call make_wrapper {*}$args
    file mkdir block_project/impl_1 block_project/block.gen/sources_1/bd/block/hw_handoff
    close [open block_project/block_wrapper.v w]
    return block_project/block_wrapper.v
}
proc launch_runs {args} { call launch_runs {*}$args }
proc get_runs {name} { return $name }
# What a run leaves: a bitstream, and beside the design what PYNQ reads.
proc wait_on_run {run} {
    global progress
    call wait_on_run $run
    foreach {path content} {impl_1/block_wrapper.bit bits block.gen/sources_1/bd/block/hw_handoff/block.hwh handoff} {
        if {$progress eq "100%"} {
            set out [open block_project/$path w]
            puts -nonewline $out $content
            close $out
        }
    }
}
